package main

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkEvery is the time between two looks of a waiting process at the folder. It does not use
// inotify: by default a user has 128 instances, kubelet and containerd need some of them, and
// every waiting process would take one.
const checkEvery = 250 * time.Millisecond

// stamp is different once a file has changed.
type stamp struct {
	ctime, size int64
	links       uint64
}

// folder is the folder of the CNI configurations. It keeps its files open, so that a look
// allocates nothing: hundreds of processes may wait.
type folder struct {
	fds    []int   // of the folder and its files
	stamps []stamp // when the folder was opened
	newest int64   // time of the latest change before that, in nanoseconds of the Unix epoch
	st     unix.Stat_t
}

// openFolder opens the folder and all its files. It returns false if it cannot.
func openFolder(path string) (*folder, bool) {
	f := &folder{}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil || !f.keep(fd) { // first, so that no change of the folder from here on is missed
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
			// A file that does not exist any more has changed the folder.
			if at, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil && !f.keep(at) {
				return f, false
			}
		}
	}
}

// keep keeps an open file of the folder, or the folder itself first. It closes a folder in the folder: the runtime does
// not notice what changes in that.
func (f *folder) keep(fd int) bool {
	s, ok := f.look(fd)
	if len(f.fds) > 0 && f.st.Mode&unix.S_IFMT == unix.S_IFDIR {
		_ = unix.Close(fd) // nothing was written
		return ok
	}
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

// changed reports whether the folder or any of its files has changed since it was opened.
func (f *folder) changed() bool {
	for i, fd := range f.fds {
		if s, ok := f.look(fd); !ok || s != f.stamps[i] {
			return true
		}
	}
	return false
}

// changedSince reports whether anything in the folder was changed between at and now, when it was
// opened. It ignores changes that are later than now: the clock was set back after them.
func (f *folder) changedSince(at, now time.Time) bool {
	return f.newest >= at.UnixNano() && f.newest <= now.Add(time.Second).UnixNano()
}

// addGrace is the longest time between the beginning of an ADD and of this process, used if it is
// not known when the ADD began.
const addGrace = 5 * time.Second

// begun returns when the ADD began, or an earlier time. containerd makes the network namespace right
// before it takes its lock.
func begun(netns string, now time.Time) time.Time {
	var st unix.Stat_t
	err := unix.Stat(netns, &st)
	if made := time.Unix(st.Ctim.Unix()); err == nil && !made.After(now) {
		return made
	}
	return now.Add(-addGrace)
}

const (
	// readWithin is how long the runtime takes at most to read the folder after a change, if no ADD keeps it from that.
	readWithin = time.Second
	// addMost is how long ADDs take at most that do not wait here.
	addMost = time.Minute
)

// readLongAgo reports whether the runtime has read the folder to its end since it changed: no ADD was under way then, and
// none began in the second after it. So nothing kept the runtime from reading, and this ADD, which began later, did not
// have to wait for it. netns is the network namespace of this ADD, beside the network namespaces of the others.
func readLongAgo(netns string, changed, begun, now time.Time) bool {
	if begun.Before(changed.Add(readWithin)) || now.After(begun.Add(addGrace)) {
		return false
	}
	folder := netns[:strings.LastIndexByte(netns, '/')+1]
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) == 0 {
		return false
	}
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Stat(folder+e.Name(), &st) != nil {
			return false // it may have been there at the change
		}
		if made := time.Unix(st.Ctim.Unix()); made.After(changed.Add(-addMost)) && made.Before(changed.Add(readWithin)) {
			return false
		}
	}
	return true
}
