package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// checkEvery is how often a process that waits looks at the folder. It is a look and no
// inotify: every process that waits would take one of the 128 instances that a kernel
// gives all processes of a user by default, and kubelet and containerd need some of them.
const checkEvery = 250 * time.Millisecond

// stamp is what tells that a file changed.
type stamp struct {
	ctime, size int64
	links       uint64
}

// folder is the folder of the CNI configurations. It keeps its files open, so that a look
// allocates nothing: what a process allocates while it waits is memory of the node.
type folder struct {
	fds    []int   // the folder's and those of what is in it
	stamps []stamp // as they were first
	newest int64   // the latest change, in nanoseconds of the Unix epoch
	st     unix.Stat_t
}

// openFolder opens the folder, and all that is in it; false: it cannot.
func openFolder(path string) (*folder, bool) {
	f := &folder{}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || !f.keep(fd) { // first of all: what changes from here on is seen
		return f, false
	}
	buf := make([]byte, 8192)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return f, false
		}
		if n == 0 {
			return f, true
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			// Not there any more, it is a change of the folder.
			if at, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil && !f.keep(at) {
				return f, false
			}
		}
	}
}

func (f *folder) keep(fd int) bool {
	s, ok := f.look(fd)
	f.fds, f.stamps = append(f.fds, fd), append(f.stamps, s)
	f.newest = max(f.newest, s.ctime)
	return ok
}

func (f *folder) look(fd int) (stamp, bool) {
	if err := unix.Fstat(fd, &f.st); err != nil {
		return stamp{}, false
	}
	return stamp{f.st.Ctim.Nano(), f.st.Size, uint64(f.st.Nlink)}, true //nolint:unconvert // it has 32 bits on arm64
}

// changed reports whether anything in the folder is not as it was first.
func (f *folder) changed() bool {
	for i, fd := range f.fds {
		if s, ok := f.look(fd); !ok || s != f.stamps[i] {
			return true
		}
	}
	return false
}

// changedSince reports whether anything in it was changed at a time or later, before it was
// opened. A time that is yet to come is of a clock that was set back since, and tells
// nothing.
func (f *folder) changedSince(at, now time.Time) bool {
	return f.newest >= at.UnixNano() && f.newest <= now.Add(time.Second).UnixNano()
}

// addGrace is by how much at most this process begins later than the ADD that it is part
// of, where nothing tells when that began.
const addGrace = 5 * time.Second

// begun is when the ADD began, or some time before: containerd makes the network namespace
// right before it takes its lock.
func begun(netns string, now time.Time) time.Time {
	var st unix.Stat_t
	if err := unix.Stat(netns, &st); err != nil || netns == "" {
		return now.Add(-addGrace)
	}
	made := time.Unix(st.Ctim.Unix())
	if made.After(now) {
		return now.Add(-addGrace)
	}
	return made
}
