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
	// removeMost bounds how long the container's first process may take to end after
	// the runtime that made it, and removeEvery is the time between two looks.
	removeMost  = 2 * time.Second
	removeEvery = 10 * time.Millisecond
)

// creation is what the hook knows of the container that is being made.
//
// When kubelet dies, the container runtime kills the runc that runs this hook, and
// only systemd, if it runs, removes the cgroup that runc has made. A kubelet that
// starts looks for the task of every container that has a cgroup, twice for 3.1 s
// each where there is none, one after the other, before it does anything else. The
// hook is the last that knows the cgroup, and removes it.
type creation struct {
	id      string // the container's
	stdin   int32  // where runc tells which process it has made; -1: read, or not given
	cgroups []string
}

// read takes what runc told on stdin, which is readable, and looks where the process
// is. Whatever is not as expected leaves no cgroup to remove.
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

// processOf finds the process in the state that an OCI runtime tells its hooks; 0:
// there is none.
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

// cgroupsOf returns the folders of a process's cgroups, by its /proc/PID/cgroup, that
// are of the container and of no other.
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

// remove removes the container's cgroups once no process is in them: the kernel
// refuses it before.
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
