package usage

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Target is what is measured of a pod: its cgroup and its processes. The zero value cannot be measured.
type Target struct {
	// CgroupParent is the pod's cgroup, as the runtime names it; empty if it is not known.
	CgroupParent string
	// PIDs are the first processes of the running containers, on the host. An unknown one is 0.
	PIDs []int
}

// Roots are where the host's file systems are mounted: /proc and /sys/fs/cgroup, as absolute paths.
type Roots struct{ Proc, Cgroup string }

// read returns a figure of a pod by its cgroup or, if the kernel does not count it there, of each of its processes,
// which ofProcess puts into the result. The error is the first one of a container's first process. Of the descendants,
// read ignores errors: they may have ended since.
func (m *Meter) read(
	p Target, ofCgroup func(path string) (float64, error), ofProcess func(p procfs.Proc, all figures) error,
) (all figures, failed error) {
	if p.CgroupParent != "" {
		if n, err := ofCgroup(p.CgroupParent); err == nil {
			return figures{{}: n}, nil
		}
	}
	all = figures{}
	threads := mostThreads
	for _, first := range p.PIDs {
		for i, pid := range m.family(first, &threads) {
			proc, err := m.process(pid)
			if err == nil {
				err = ofProcess(proc, all)
			}
			if i == 0 && failed == nil {
				failed = err
			}
		}
	}
	return all, failed
}

var (
	errNoProcess      = errors.New("neither a cgroup nor a process is known")
	errTooManyThreads = fmt.Errorf("more than %d threads", mostThreads)
)

// process returns a process of the host.
func (m *Meter) process(pid int) (procfs.Proc, error) {
	switch {
	case pid <= 0:
		return procfs.Proc{}, errNoProcess
	case m.noProc != nil:
		return procfs.Proc{}, m.noProc
	default:
		return m.proc.Proc(pid)
	}
}

// cpu returns the CPU-seconds of a pod. Of its processes, those that have ended are missing.
func (m *Meter) cpu(p Target) (sum float64, err error) {
	all, err := m.read(p, m.cgroups.CPUSeconds, func(proc procfs.Proc, all figures) error {
		stat, err := proc.Stat()
		if err != nil {
			return fmt.Errorf("process %d: %w", proc.PID, err)
		}
		all[thread{process: proc.PID}] = stat.CPUTime()
		return nil
	})
	for _, seconds := range all {
		sum += seconds
	}
	return sum, err
}

// inLine returns for how many seconds the pod waited for a CPU. The kernel counts the time in which one or more threads
// of a cgroup wait. Where it does not count that, inLine returns for how long each thread waited: the second figure of
// /proc/PID/task/TID/schedstat. The result is empty if the kernel counts neither, or if the pod has too many threads.
func (m *Meter) inLine(p Target) figures {
	left := mostThreads
	all, _ := m.read(p, m.cgroups.CPUWaitSeconds, func(proc procfs.Proc, all figures) error {
		threads := m.threads(proc.PID, left+1)
		if left -= len(threads); left < 0 {
			return errTooManyThreads
		}
		for _, id := range threads {
			if seconds, err := m.waited(proc.PID, id); err == nil {
				all[thread{proc.PID, id}] = seconds
			}
		}
		return nil
	})
	if left < 0 {
		return nil
	}
	return all
}

// moved returns how many bytes the pod moved to and from disks, or, if the kernel does not count that by cgroup, each
// of its processes. The result is nil if that is not known.
func (m *Meter) moved(p Target) (figures, error) {
	all, err := m.read(p, m.cgroups.IOBytes, func(proc procfs.Proc, all figures) error {
		io, err := proc.IO()
		if err != nil {
			return fmt.Errorf("I/O of process %d: %w", proc.PID, err)
		}
		all[thread{process: proc.PID}] = float64(io.ReadBytes) + float64(io.WriteBytes)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// usage returns what the pod has used until now. With an error, the bytes moved are not known; with the zero value,
// nothing is.
func (m *Meter) usage(now time.Time, p Target) (usage, error) {
	used, err := m.cpu(p)
	if err != nil {
		return usage{}, err
	}
	moved, err := m.moved(p)
	return usage{at: now, cpu: used, inLine: m.inLine(p), moved: moved}, err
}
