package waiter

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of the time between two tries to take the door while another hook holds it.
const (
	doorRetryMin  = 5 * time.Millisecond
	doorRetryMost = 200 * time.Millisecond
)

// door makes hooks leave one at a time when no daemon decides, each one pace after the hook
// before it. It is a lock on the folder of the daemon's socket. A hook holds it for one pace
// before it leaves, and the kernel releases it when the hook ends. So no two hooks leave within
// one pace, whatever times they were sent, and however late they notice that no daemon decides.
type door struct {
	host   Host
	folder string
	fd     int       // -1: not held
	since  time.Time // when it was taken
	retry  time.Time // when to try again; zero if it was not tried in vain
}

func newDoor(host Host, socket string) door {
	folder := "."
	if end := strings.LastIndexByte(socket, '/'); end >= 0 {
		folder = socket[:end+1]
	}
	return door{host: host, folder: folder, fd: -1}
}

// next returns when a hook that leaves at due has something to do: take the door, try again, or
// leave.
func (d *door) next(due time.Time, pace time.Duration) time.Time {
	if d.fd >= 0 {
		return later(due, d.since.Add(pace))
	}
	return later(d.retry, due.Add(-pace))
}

// passes reports whether a hook that leaves at due may leave at now. If not, next returns when to
// ask again.
func (d *door) passes(now, due time.Time, pace time.Duration) bool {
	if d.fd < 0 && !now.Before(d.next(due, pace)) && !d.take(now, pace) {
		d.retry = due // there is no folder, or it cannot be locked: hooks leave when they are due
		return !now.Before(due)
	}
	return d.fd >= 0 && !now.Before(d.next(due, pace))
}

// take takes the door, or sets when to try again. It returns false if the door cannot be used.
func (d *door) take(now time.Time, pace time.Duration) bool {
	fd, err := d.host.Lock(d.folder)
	switch {
	case err == nil:
		// Do not use now: the hook before this one may have left after now was read.
		d.fd, d.since = fd, time.Now()
		return true
	case errors.Is(err, unix.EWOULDBLOCK):
		d.retry = now.Add(min(max(pace/16, doorRetryMin), doorRetryMost))
		return true
	}
	return false
}

// release gives the door to the next hook.
func (d *door) release() {
	if d.fd >= 0 {
		d.host.Close(d.fd)
	}
	d.fd, d.retry = -1, time.Time{}
}
