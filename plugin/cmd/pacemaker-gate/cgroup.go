package main

import (
	"errors"
	"path"
	"slices"
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

// removeCgroup removes the cgroup of the container in every hierarchy, once no process is in it.
// Before, the kernel refuses to. If cgroup is empty, there is nothing to remove.
//
// When kubelet dies, the container runtime kills the runc that runs this hook. Only systemd,
// if it runs, removes the cgroup that runc has made. A kubelet that starts looks for the task
// of every container that has a cgroup. If there is no task, that takes twice 3.1 s for each
// container, one after the other, before kubelet does anything else. The hook is the last
// process that knows the cgroup, so it removes it.
func removeCgroup(root, cgroup string) {
	if cgroup == "" {
		return
	}
	folders := []string{path.Join(root, cgroup)}
	for _, hierarchy := range names(root) { // of cgroup v1
		folders = append(folders, path.Join(root, hierarchy, cgroup))
	}
	for end := time.Now().Add(removeMost); ; time.Sleep(removeEvery) {
		folders = slices.DeleteFunc(folders, func(folder string) bool { return !errors.Is(unix.Rmdir(folder), unix.EBUSY) })
		if len(folders) == 0 || time.Now().After(end) {
			return
		}
	}
}

// names returns the names in a folder; none if it cannot be read. It reads the first few hundred,
// which are more than there are hierarchies. os.ReadDir would cost each waiting hook memory.
func names(folder string) (all []string) {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var entries [8192]byte
	if n, err := unix.ReadDirent(fd, entries[:]); err == nil {
		_, _, all = unix.ParseDirent(entries[:n], -1, nil)
	}
	return all
}
