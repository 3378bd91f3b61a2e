package signals

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/utils/cpuset"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// reader reads the counters of a node.
type reader struct {
	root    string
	cgroups cgroup.Reader
	// began is what the clock of the counters of pressure and quotas counts from.
	began time.Time
}

func newReader(procRoot, cgroupRoot string) reader {
	return reader{root: procRoot, cgroups: cgroup.Reader{Root: cgroupRoot}, began: time.Now()}
}

// read takes a sample. CPU use and CPU pressure are of the CPUs that pods can use. A file that cannot be read sets the
// error of its counters.
func (r reader) read(pods cores.Cores) moment {
	m := moment{at: time.Now()}
	proc, err := procfs.NewFS(r.root)
	if err != nil {
		for i := range m.counters {
			m.counters[i].err = unread(r.root, err)
		}
		return m
	}
	stat, err := r.stat(proc)
	busy, pressure := &m.counters[throttle.SignalCPU], &m.counters[throttle.SignalCPUPressure]
	*busy, m.counters[throttle.SignalIOWait] = cpuTimes(stat.CPUTotal, err)
	m.counters[throttle.SignalLoad] = r.load(proc)
	*pressure, _ = r.pressure(proc, "cpu") // the tasks of a whole node never all stall for CPU
	switch {
	case pods.Quota > 0:
		*busy = r.quota(r.cgroups.CPUSeconds, pods, pods.Quota)
		*pressure = r.quota(r.cgroups.CPUWaitSeconds, pods, 1)
	case !pods.CPUs.IsEmpty():
		*busy, pressure.worked, pressure.podsWorked = r.cpuTimesOf(pods.CPUs, stat, err)
		pressure.err = cmp.Or(pressure.err, busy.err)
	}
	m.counters[throttle.SignalMemoryPressure], m.counters[throttle.SignalMemoryFull] = r.pressure(proc, "memory")
	m.counters[throttle.SignalIOPressure], m.counters[throttle.SignalIOFull] = r.pressure(proc, "io")
	return m
}

// pressure returns how long some tasks, and all, have stalled for a resource since boot.
func (r reader) pressure(proc procfs.FS, resource string) (some, full counter) {
	path := filepath.Join(r.root, "pressure", resource)
	// The clock is read beside each counter: on a starved node, time passes between two files.
	elapsed := time.Since(r.began).Seconds()
	stats, err := proc.PSIStatsForResource(resource)
	stalled := func(name string, line *procfs.PSILine) counter {
		switch {
		case err != nil:
			return counter{err: unread(path, err)}
		case line == nil:
			return counter{err: fmt.Errorf("%s: %q: %w", path, name, ErrLine)}
		default:
			return counter{used: float64(line.Total) / 1e6, total: elapsed}
		}
	}
	return stalled("some", stats.Some), stalled("full", stats.Full)
}

// stat reads the times of the CPUs.
func (r reader) stat(proc procfs.FS) (procfs.Stat, error) {
	path := filepath.Join(r.root, "stat")
	stat, err := proc.Stat()
	busy, iowait := cpuTimes(stat.CPUTotal, nil)
	switch {
	case err != nil:
		return procfs.Stat{}, unread(path, err)
	case busy.total == 0:
		return procfs.Stat{}, fmt.Errorf("%s: %q: %w", path, "cpu", ErrLine)
	case !plausible(busy.used) || !plausible(iowait.used) || !plausible(stat.CPUTotal.Idle):
		return procfs.Stat{}, fmt.Errorf("%s: %w: %+v", path, ErrParse, stat.CPUTotal)
	}
	return stat, nil
}

// plausible reports whether a number of the kernel can be one.
func plausible(n float64) bool { return n >= 0 && !math.IsInf(n, 1) }

// cpuTimes returns how long CPUs were busy and in iowait, each as a part of all their time.
func cpuTimes(t procfs.CPUStat, err error) (busy, iowait counter) {
	used := t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal // user and nice include guests
	all := used + t.Idle + t.Iowait
	return counter{used: used, total: all, err: err}, counter{used: t.Iowait, total: all, err: err}
}

// cpuTimesOf returns how long these CPUs were busy, as a part of all their time, and for how long all CPUs and these were
// not idle. As in the kernel's weights of CPU pressure, a CPU is not idle while one of its tasks waits for a disk.
func (r reader) cpuTimesOf(cpus cpuset.CPUSet, stat procfs.Stat, err error) (busy counter, worked, these float64) {
	busy.err = err
	for id, t := range stat.CPU {
		one, iowait := cpuTimes(t, nil)
		worked += one.used + iowait.used
		if cpus.Contains(int(id)) {
			busy.used += one.used
			busy.total += one.total
			these += one.used + iowait.used
		}
	}
	if err == nil && busy.total == 0 {
		busy.err = fmt.Errorf("%s: CPUs %s: %w", filepath.Join(r.root, "stat"), cpus, ErrLine)
	}
	return busy, worked, these
}

// quota returns a figure of the cgroup whose quota holds the pods, in seconds, as a part of the time of so many CPUs.
func (r reader) quota(figure func(path string) (float64, error), pods cores.Cores, cpus float64) counter {
	elapsed := time.Since(r.began).Seconds()
	used, err := figure("/" + pods.QuotaOf)
	if err != nil {
		return counter{err: unread(filepath.Join(r.cgroups.Root, pods.QuotaOf), err)}
	}
	return counter{used: used, total: elapsed * cpus}
}

// load returns the load average over one minute.
func (r reader) load(proc procfs.FS) counter {
	path := filepath.Join(r.root, "loadavg")
	average, err := proc.LoadAvg()
	switch {
	case err != nil:
		return counter{err: unread(path, err)}
	case !plausible(average.Load1):
		return counter{err: fmt.Errorf("%s: %w: %g", path, ErrParse, average.Load1)}
	}
	return counter{used: average.Load1}
}
