package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

// whole is the key of a figure for the whole pod.
const whole = "pod"

// mostProcesses is how many processes of a container are measured at most.
const mostProcesses = 256

// Place is where a pod runs on the node. The zero value is a pod that cannot be measured.
type Place struct {
	// CgroupParent is the pod's cgroup, as the runtime names it; empty: it is not known.
	CgroupParent string
	// Containers are the running containers.
	Containers []Container
}

// Container is where one container runs.
type Container struct {
	Cgroup string // as the runtime names it; empty: it is not known
	PID    int    // of its first process, on the host; 0: it is not known
}

// meter measures what a pod has used of the node: by its cgroup, or else its containers' cgroups, or else its
// containers' processes. Make it with newMeter. It is safe for concurrent use.
type meter struct {
	cgroups cgroup.Reader
	proc    string // where the host's /proc is
}

func newMeter(r Roots) meter { return meter{cgroups: cgroup.Reader{Root: r.Cgroup}, proc: r.Proc} }

// Roots are where the host's file systems are mounted: /proc and /sys/fs/cgroup, as absolute paths.
type Roots struct{ Proc, Cgroup string }

// cpu returns the CPU-seconds of a pod.
func (m meter) cpu(p Place) (float64, error) {
	if p.CgroupParent != "" {
		if used, err := m.cgroups.CPUSeconds(p.CgroupParent); err == nil {
			return used, nil
		}
	}
	var sum float64
	for _, c := range p.Containers {
		used, err := m.cgroups.CPUSeconds(c.Cgroup)
		if err != nil {
			used, err = m.processCPU(c.PID)
		}
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

var errNoProcess = errors.New("neither a cgroup nor a process is known")

// process returns a process of the host.
func (m meter) process(pid int) (procfs.Proc, error) {
	if pid <= 0 {
		return procfs.Proc{}, errNoProcess
	}
	fs, err := procfs.NewFS(m.proc)
	if err != nil {
		return procfs.Proc{}, err
	}
	return fs.Proc(pid)
}

func (m meter) processCPU(pid int) (float64, error) {
	proc, err := m.process(pid)
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return stat.CPUTime(), nil
}

// inLine returns for how many seconds the pod waited for a CPU. The kernel counts the time in which one or more threads
// of a cgroup wait. Where it does not count that, inLine returns for how long each thread waited: the second figure of
// /proc/PID/task/TID/schedstat. The result is empty if the kernel counts neither.
func (m meter) inLine(p Place) map[thread]float64 {
	if p.CgroupParent != "" {
		if waited, err := m.cgroups.CPUWaitSeconds(p.CgroupParent); err == nil {
			return map[thread]float64{{}: waited}
		}
	}
	all := map[thread]float64{}
	fs, err := procfs.NewFS(m.proc)
	if err != nil {
		return all
	}
	for _, c := range p.Containers {
		for _, pid := range m.family(c.PID) {
			threads, _ := fs.AllThreads(pid) // none: the process has ended since
			for _, t := range threads {
				if s, err := t.Schedstat(); err == nil {
					all[thread{pid, t.PID}] = time.Duration(s.WaitingNanoseconds).Seconds()
				}
			}
		}
	}
	return all
}

// moved returns how many bytes the pod moved to and from disks, or, if the kernel does not count that by cgroup, each of
// its processes.
func (m meter) moved(p Place) (map[string]float64, error) {
	if p.CgroupParent != "" {
		if bytes, err := m.cgroups.IOBytes(p.CgroupParent); err == nil {
			return map[string]float64{whole: bytes}, nil
		}
	}
	all := map[string]float64{}
	for _, c := range p.Containers {
		for i, pid := range m.family(c.PID) {
			bytes, err := m.processMoved(pid)
			switch {
			case err == nil:
				all[strconv.Itoa(pid)] = bytes
			case i == 0:
				return nil, err
			} // a descendant may have ended since
		}
	}
	return all, nil
}

func (m meter) processMoved(pid int) (float64, error) {
	proc, err := m.process(pid)
	if err != nil {
		return 0, err
	}
	io, err := proc.IO()
	if err != nil {
		return 0, fmt.Errorf("I/O of process %d: %w", pid, err)
	}
	return float64(io.ReadBytes) + float64(io.WriteBytes), nil
}

// family returns a process and its descendants, as far as the kernel lists them.
func (m meter) family(pid int) []int {
	family := []int{pid}
	for i := 0; i < len(family) && len(family) < mostProcesses; i++ {
		family = append(family, m.children(family[i])...)
	}
	return family
}

func (m meter) children(pid int) (pids []int) {
	lists, err := filepath.Glob(filepath.Join(m.proc, strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		return nil
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended since
		}
		for child := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(child); err == nil && n > 0 {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// usage returns what the pod has used until now. With an error, the bytes moved are not known; with the zero value,
// nothing is.
func (m meter) usage(now time.Time, p Place) (usage, error) {
	used, err := m.cpu(p)
	if err != nil {
		return usage{}, err
	}
	moved, err := m.moved(p)
	return usage{at: now, cpu: used, inLine: m.inLine(p), moved: moved}, err
}
