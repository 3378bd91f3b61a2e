// Package cgroup tells how much CPU time the containers of a pod have used, from the cgroup file system.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// The ways in which reading fails; every error of this package wraps one of them, or the error of the file system
// (such as fs.ErrPermission).
var (
	// ErrNotFound: there is no such cgroup, not yet or not any more.
	ErrNotFound = errors.New("cgroup not found")
	// ErrParse: the path, or what the kernel's file says, is not understood.
	ErrParse = errors.New("cgroup not understood")
)

// Reader reads the cgroup file system at Root, which is /sys/fs/cgroup on a host. In a container, Root must be where the
// host's /sys/fs/cgroup is mounted: the container's own can be limited to its own subtree.
// Methods may be called from any goroutine.
type Reader struct {
	Root string
}

// source is a place where the cumulative CPU time of a cgroup can stand.
type source struct {
	hierarchy, file string
	parse           func(content []byte) (float64, error)
}

// On the unified hierarchy every cgroup has a cpu.stat. With cgroup v1, cpuacct is mounted alone or together with cpu;
// in a hybrid setup without cpuacct, the unified hierarchy stands beside the v1 ones.
var (
	unified = source{"", "cpu.stat", parseStat}
	legacy  = []source{
		{"cpuacct", "cpuacct.usage", parseUsage},
		{"cpu,cpuacct", "cpuacct.usage", parseUsage},
		{"cpuacct,cpu", "cpuacct.usage", parseUsage},
		{"unified", "cpu.stat", parseStat},
	}
)

// CPUSeconds returns the CPU time in seconds, user and system, that the named cgroup and everything below it have used
// since it was made. It asks the kernel each time and blocks no longer than that takes.
//
// path is an NRI container's linux.cgroups_path ("/kubepods/pod1/id", or "kubepods-pod1.slice:cri-containerd:id" for
// the systemd driver) or an NRI sandbox's linux.cgroup_parent ("/kubepods/pod1", "/kubepods.slice/kubepods-pod1.slice",
// or "kubepods-pod1.slice"), which gives the sum over the pod.
func (r Reader) CPUSeconds(path string) (float64, error) {
	dir, err := directory(path)
	if err != nil {
		return 0, fmt.Errorf("cgroup path %q: %w", path, err)
	}
	sources := legacy
	if _, err := os.Stat(filepath.Join(r.Root, "cgroup.controllers")); err == nil {
		sources = []source{unified}
	}
	for _, s := range sources {
		seconds, err := s.read(r.Root, dir)
		if !errors.Is(err, ErrNotFound) {
			return seconds, err
		}
	}
	return 0, fmt.Errorf("cgroup %s under %s: %w", dir, r.Root, ErrNotFound)
}

func (s source) read(root, dir string) (float64, error) {
	name := filepath.Join(root, s.hierarchy, dir, s.file)
	content, err := os.ReadFile(name)
	if gone(err) {
		return 0, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return 0, err
	}
	seconds, err := s.parse(content)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return seconds, nil
}

// gone is true of the errors for a cgroup that does not exist, or that was removed between open and read (ENODEV).
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTDIR)
}
