package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// aloneMost is how long a process waits for a daemon that went away, and how long after the first of them has left
// without one the others no longer wait for one at all.
const aloneMost = time.Minute

// gone is the file that says since when processes leave the room without a daemon.
type gone struct{ folder, path string }

func goneOf(socket string) gone {
	folder := noteFolder(socket)
	return gone{folder, folder + "/" + wire.GoneFile}
}

// forGood reports whether the daemon has been away for so long that no process waits for it.
func (g gone) forGood(now time.Time) bool {
	var st unix.Stat_t
	if err := unix.Lstat(g.path, &st); err != nil {
		return false
	}
	since := time.Unix(st.Mtim.Unix())
	return now.Sub(since) > aloneMost
}

// mark makes the file, if it is not there and can be made.
func (g gone) mark() {
	_ = os.MkdirAll(g.folder, 0o700) // after an error the file cannot be made either
	if fd, err := unix.Open(g.path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600); err == nil {
		_ = unix.Close(fd) // nothing was written
	}
}
