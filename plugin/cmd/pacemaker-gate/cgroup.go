package main

import (
	"bytes"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// removeMost is how long the hook waits for the container's first process to end after
	// the runtime was killed, and removeEvery is the time between two tries.
	removeMost  = 2 * time.Second
	removeEvery = 10 * time.Millisecond
)

// creation is the container that runc is making.
//
// When kubelet dies, the container runtime kills the runc that runs this hook. Only systemd,
// if it runs, removes the cgroup that runc has made. A kubelet that starts looks for the task
// of every container that has a cgroup. If there is no task, that takes twice 3.1 s for each
// container, one after the other, before kubelet does anything else. The hook is the last
// process that knows the cgroup, so it removes it.
type creation struct {
	id      string // of the container
	stdin   int32  // where runc writes which process it has made; -1: it was read
	cgroups []string
}

// read reads from stdin, which must be readable, which process runc has made, and finds its
// cgroups. If anything is not as expected, there is no cgroup to remove.
func (c *creation) read() {
	var state [1024]byte // the annotations, which can be long, come last
	n, err := unix.Read(int(c.stdin), state[:])
	c.stdin = -1
	if err != nil {
		return
	}
	pid := processOf(state[:n])
	if pid == 0 {
		return
	}
	var text [8192]byte
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/cgroup", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if n, err = unix.Read(fd, text[:]); err == nil {
		c.cgroups = cgroupsOf(string(text[:n]), c.id)
	}
}

// processOf returns the process in the state that an OCI runtime writes to its hooks, or 0.
func processOf(state []byte) int {
	_, rest, _ := bytes.Cut(state, []byte(`"pid":`))
	rest = bytes.TrimLeft(rest, " ")
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end <= 0 {
		return 0
	}
	pid, err := strconv.Atoi(string(rest[:end]))
	if err != nil {
		return 0
	}
	return pid
}

// cgroupsOf returns the folders of the cgroups in a /proc/PID/cgroup that belong to the
// container and to no other.
func cgroupsOf(text, id string) (folders []string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, _ := strings.Cut(rest, ":")
		if id == "" || !strings.Contains(path.Base(at), id) {
			continue
		}
		hierarchies := []string{strings.TrimPrefix(controllers, "name=")}
		if controllers == "" {
			hierarchies = []string{"", "unified"}
		}
		for _, h := range hierarchies {
			folders = append(folders, path.Join(cgroupRoot, h, at))
		}
	}
	return folders
}

// remove removes the cgroups of the container once no process is in them. Before, the kernel
// refuses to.
func (c *creation) remove() {
	for end := time.Now().Add(removeMost); ; time.Sleep(removeEvery) {
		busy := false
		for _, folder := range c.cgroups {
			busy = errors.Is(unix.Rmdir(folder), unix.EBUSY) || busy
		}
		if !busy || time.Now().After(end) {
			return
		}
	}
}
