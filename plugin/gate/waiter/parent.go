package waiter

import "golang.org/x/sys/unix"

// parent is the process that ran this one, for example runc.
type parent struct {
	pid int
	fd  int32 // readable when the parent has ended; -1: not available
}

func watchParent(pid int) parent {
	// It fails on kernels before 5.3, and for pid 0, a parent in another pid namespace. Then
	// the end is noticed with the next line of the daemon, or the next try to reach one.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		fd = -1
	}
	return parent{pid: pid, fd: int32(fd)}
}

// gone reports whether the parent has ended. It compares with the first parent, because a
// hook that is run by hand may have init as its parent from the beginning. It also notices a
// parent that ended before the pidfd was open.
func (p parent) gone() bool { return unix.Getppid() != p.pid }
