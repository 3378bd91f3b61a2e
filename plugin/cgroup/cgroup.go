// Package cgroup reads what the containers of a pod have used of the node, from the cgroup file system: CPU time, the
// time they waited for a CPU, and the bytes they moved to and from disks.
//
// It does not use github.com/containerd/cgroups/v3, which would replace only the parser here, and returns 0 without an error
// for a file that is missing: a start would then seem to make no progress. For cgroup v1 that module counts no I/O of the
// cgroups below a pod's own, and it brings along modules for eBPF and D-Bus.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Reader reads the cgroup file system at Root, which is /sys/fs/cgroup on a host. In a container, Root must be where the
// host's /sys/fs/cgroup is mounted: the container's own can be limited to its own subtree. Its methods are safe for
// concurrent use, and block while they read files.
type Reader struct {
	Root string
}

// source is a file that may have a cumulative figure of a cgroup.
type source struct {
	hierarchy, file string
	figure          figure
}

// The files that may have a figure, in order: on the unified hierarchy, or else on the hierarchies of cgroup v1.
var (
	// On the unified hierarchy every cgroup has a cpu.stat. With cgroup v1, cpuacct is mounted alone or together with
	// cpu; in a hybrid setup without cpuacct, the unified hierarchy is mounted beside the v1 ones.
	cpuTime = []source{
		{"", "cpu.stat", cpuStat},
		{"cpuacct", "cpuacct.usage", cpuUsage},
		{"cpu,cpuacct", "cpuacct.usage", cpuUsage},
		{"cpuacct,cpu", "cpuacct.usage", cpuUsage},
		{"unified", "cpu.stat", cpuStat},
	}
	// cgroup v1 counts no waiting.
	cpuWait = []source{{"", "cpu.pressure", pressureTotal}}
	// Of the files of cgroup v1, only the recursive one includes the cgroups below. cgroup v1 does not count writes
	// through the page cache.
	ioBytes = []source{
		{"", "io.stat", deviceBytes},
		{"blkio", "blkio.throttle.io_service_bytes_recursive", serviceBytes},
	}
)

// CPUSeconds returns the CPU time in seconds, user and system, that the named cgroup and everything below it have used
// since it was made. It reads the kernel's file each time.
//
// path is an NRI container's linux.cgroups_path ("/kubepods/pod1/id", or "kubepods-pod1.slice:cri-containerd:id" for
// the systemd driver) or an NRI sandbox's linux.cgroup_parent ("/kubepods/pod1", "/kubepods.slice/kubepods-pod1.slice",
// or "kubepods-pod1.slice"), which gives the sum over the pod.
//
// It returns an error if the path or the kernel's file is not understood, the cgroup does not exist, or the kernel does
// not count the figure. The error comes from the last file that may have the figure.
func (r Reader) CPUSeconds(path string) (float64, error) { return r.figure(path, cpuTime) }

// CPUWaitSeconds returns for how many seconds a thread of the named cgroup, or below it, waited for a CPU since the
// cgroup was made. It includes the time in which the cgroup's own CPU limit held the thread. The kernel does not count
// it with cgroup v1. Otherwise it is like CPUSeconds.
func (r Reader) CPUWaitSeconds(path string) (float64, error) { return r.figure(path, cpuWait) }

// IOBytes returns how many bytes the named cgroup and everything below it have read from disks and written to them
// since it was made. The kernel does not count it with cgroup v2 while the io controller is off, and with cgroup v1 and
// a newer kernel (such as 6.18) until an I/O limit is set. Otherwise it is like CPUSeconds.
func (r Reader) IOBytes(path string) (float64, error) {
	moved, err := r.figure(path, ioBytes)
	if moved != 0 || err != nil {
		return moved, err
	}
	if _, err := os.Stat(filepath.Join(r.Root, "cgroup.controllers")); err == nil {
		return 0, nil // cgroup v2
	}
	// If the kernel does not count, the file exists and has 0, for the whole host as well.
	all, err := r.figure("/", ioBytes)
	if err == nil && all == 0 {
		err = errors.New("the kernel counts no I/O of any cgroup")
	}
	return 0, err
}

func (r Reader) figure(path string, sources []source) (figure float64, err error) {
	dir, err := Directory(path)
	if err != nil {
		return 0, fmt.Errorf("cgroup path %q: %w", path, err)
	}
	for _, s := range sources {
		name := filepath.Join(r.Root, s.hierarchy, dir, s.file)
		var content []byte
		if content, err = os.ReadFile(name); err != nil {
			continue
		}
		if figure, err = s.figure.parse(content); err == nil {
			return figure, nil
		}
		err = fmt.Errorf("%s: %w", name, err)
	}
	return 0, err
}
