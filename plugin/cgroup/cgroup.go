// Package cgroup reads what the containers of a pod have used of the node, from the cgroup file system: CPU time, the
// time they waited for a CPU, and the bytes they moved to and from disks.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Every error of this package wraps one of these, or the error of the file system (such as fs.ErrPermission).
var (
	// ErrNotFound is returned when the cgroup does not exist, or does not count the figure.
	ErrNotFound = errors.New("cgroup not found")
	// ErrParse is returned when the path or the content of the kernel's file is not understood.
	ErrParse = errors.New("cgroup not understood")
)

// Reader reads the cgroup file system at Root, which is /sys/fs/cgroup on a host. In a container, Root must be where the
// host's /sys/fs/cgroup is mounted: the container's own can be limited to its own subtree.
// Methods may be called from any goroutine.
type Reader struct {
	Root string
}

// source is a file that may have a cumulative figure of a cgroup.
type source struct {
	hierarchy, file string
	figure          figure
}

// The files that may have a figure, in order: on the unified hierarchy, or else on those of cgroup v1.
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
func (r Reader) CPUSeconds(path string) (float64, error) { return r.figure(path, cpuTime) }

// CPUWaitSeconds returns for how many seconds a thread of the named cgroup, or below it, waited for a CPU since the
// cgroup was made. It includes the time in which the cgroup's own CPU limit held the thread. If the kernel does not
// count it, as with cgroup v1, the error is ErrNotFound. Otherwise it is like CPUSeconds.
func (r Reader) CPUWaitSeconds(path string) (float64, error) { return r.figure(path, cpuWait) }

// IOBytes returns how many bytes the named cgroup and everything below it have read from disks and written to them
// since it was made. If the kernel does not count I/O, the error is ErrNotFound: with cgroup v2 while the io controller
// is off, with cgroup v1 and a newer kernel (such as 6.18) until an I/O limit is set. Otherwise it is like CPUSeconds.
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
		err = fmt.Errorf("I/O of any cgroup under %s: %w", r.Root, ErrNotFound)
	}
	return 0, err
}

func (r Reader) figure(path string, sources []source) (float64, error) {
	dir, err := directory(path)
	if err != nil {
		return 0, fmt.Errorf("cgroup path %q: %w", path, err)
	}
	for _, s := range sources {
		figure, err := s.read(r.Root, dir)
		if !errors.Is(err, ErrNotFound) {
			return figure, err
		}
	}
	return 0, fmt.Errorf("%s of cgroup %s under %s: %w", sources[0].file, dir, r.Root, ErrNotFound)
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
	figure, err := s.figure.parse(content)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return figure, nil
}

// gone is true of the errors for a cgroup that does not exist, or that was removed between open and read (ENODEV), and
// for pressure that the kernel was told not to count (EOPNOTSUPP).
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, syscall.EOPNOTSUPP)
}
