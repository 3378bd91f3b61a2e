package waiter

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the time between two tries to be the next to leave, while another is about to.
const (
	doorRetryMin  = 5 * time.Millisecond
	doorRetryMost = 200 * time.Millisecond
)

// door is what hooks leave by where no daemon decides: one at a time, each a pace after the
// one before. It is a lock on the folder of the daemon's socket, which a hook keeps for one
// pace before it leaves; the kernel takes it back when the hook ends. So no two leave within
// a pace, whatever they were told, and however late they find out that no daemon decides.
type door struct {
	folder string
	fd     int       // -1: not held
	since  time.Time // when it was taken
	retry  time.Time // when to try again; zero: no other hook was in the way
}

func newDoor(socket string) door {
	folder := "."
	if end := strings.LastIndexByte(socket, '/'); end >= 0 {
		folder = socket[:end+1]
	}
	return door{folder: folder, fd: -1}
}

// next returns when there is something to do for a hook that is due to leave: to take the
// door, to try again, or to leave.
func (d *door) next(due time.Time, pace time.Duration) time.Time {
	if d.fd >= 0 {
		return later(due, d.since.Add(pace))
	}
	return later(d.retry, due.Add(-pace))
}

// passes reports whether a hook that is due to leave may do so at now; if not, next tells
// when to ask again.
func (d *door) passes(now, due time.Time, pace time.Duration) bool {
	if d.fd < 0 && !now.Before(d.next(due, pace)) && !d.take(now, pace) {
		return !now.Before(due) // there is no such folder, or no locks: nothing keeps hooks apart
	}
	return d.fd >= 0 && !now.Before(d.next(due, pace))
}

// take takes the door, or sets when to try again. It is false where there is no door.
func (d *door) take(now time.Time, pace time.Duration) bool {
	fd, err := unix.Open(d.folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	switch err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		// Not now: the hook before this one may have left after it was read.
		d.fd, d.since = fd, time.Now()
		return true
	case errors.Is(err, unix.EWOULDBLOCK):
		_ = unix.Close(fd) // nothing was written
		d.retry = now.Add(min(max(pace/16, doorRetryMin), doorRetryMost))
		return true
	}
	_ = unix.Close(fd)
	return false
}

// leave lets another hook take the door.
func (d *door) leave() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
	}
	d.fd = -1
}
