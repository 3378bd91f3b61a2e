// Package cgroup reads what the containers of a pod have used of the node, from the cgroup file system: CPU time, the
// time they stood in line for a CPU, and the bytes they moved to and from disks.
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
	// ErrNotFound: there is no such cgroup, not yet or not any more; or it does not count what was asked for.
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

// source is a place where a cumulative figure of a cgroup can stand.
type source struct {
	hierarchy, file string
	figure          figure
}

// Where a figure stands: on the unified hierarchy, or else on those of cgroup v1, in this order.
var (
	// On the unified hierarchy every cgroup has a cpu.stat. With cgroup v1, cpuacct is mounted alone or together with
	// cpu; in a hybrid setup without cpuacct, the unified hierarchy stands beside the v1 ones.
	cpuTime = []source{
		{"", "cpu.stat", cpuStat},
		{"cpuacct", "cpuacct.usage", cpuUsage},
		{"cpu,cpuacct", "cpuacct.usage", cpuUsage},
		{"cpuacct,cpu", "cpuacct.usage", cpuUsage},
		{"unified", "cpu.stat", cpuStat},
	}
	// cgroup v1 counts no waiting.
	cpuWait = []source{{"", "cpu.pressure", pressureTotal}}
	// Of the files of cgroup v1, only the recursive one knows what the cgroups below have moved. Writes that go through
	// the page cache, v1 counts for no pod.
	ioBytes = []source{
		{"", "io.stat", deviceBytes},
		{"blkio", "blkio.throttle.io_service_bytes_recursive", serviceBytes},
	}
)

// CPUSeconds returns the CPU time in seconds, user and system, that the named cgroup and everything below it have used
// since it was made. It asks the kernel each time and blocks no longer than that takes.
//
// path is an NRI container's linux.cgroups_path ("/kubepods/pod1/id", or "kubepods-pod1.slice:cri-containerd:id" for
// the systemd driver) or an NRI sandbox's linux.cgroup_parent ("/kubepods/pod1", "/kubepods.slice/kubepods-pod1.slice",
// or "kubepods-pod1.slice"), which gives the sum over the pod.
func (r Reader) CPUSeconds(path string) (float64, error) { return r.figure(path, cpuTime) }

// CPUWaitSeconds returns for how many seconds some thread of the named cgroup, or below it, stood in line for a CPU
// since the cgroup was made; time in which its own CPU limit held it counts too. Where the kernel does not count that,
// as with cgroup v1, the error is ErrNotFound. Else it is as CPUSeconds.
func (r Reader) CPUWaitSeconds(path string) (float64, error) { return r.figure(path, cpuWait) }

// IOBytes returns how many bytes the named cgroup and everything below it have read from disks and written to them
// since it was made. Where no I/O is counted the error is ErrNotFound: with cgroup v2 as long as the io controller is
// off, with cgroup v1 and a newer kernel (6.18 for one) until an I/O limit is set. Else it is as CPUSeconds.
func (r Reader) IOBytes(path string) (float64, error) {
	moved, err := r.figure(path, ioBytes)
	if moved != 0 || err != nil {
		return moved, err
	}
	if _, err := os.Stat(filepath.Join(r.Root, "cgroup.controllers")); err == nil {
		return 0, nil // cgroup v2
	}
	// Where the kernel does not count, the file is there and says 0, for the whole host as well.
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
