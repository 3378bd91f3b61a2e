package waiter

import (
	"time"

	"golang.org/x/sys/unix"
)

// parentCheck is how often the parent is looked at where the kernel cannot tell
// of its end.
const parentCheck = time.Second

// parent is the process that ran the hook: runc.
type parent struct {
	pid int
	fd  int32 // readable when the parent has ended; -1 where the kernel has none
}

func watchParent(pid int) parent {
	// Fails on kernels before 5.3, and for pid 0: a parent in another pid namespace.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		fd = -1
	}
	return parent{pid: pid, fd: int32(fd)}
}

// gone compares, because a hook that is run by hand may well have init as
// its parent from the beginning. It also sees a parent that ended, and whose pid
// went to another process, before the pidfd was open.
func (p parent) gone() bool { return unix.Getppid() != p.pid }
