package signals

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/utils/cpuset"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// ticksPerSecond is the unit of /proc/stat, USER_HZ, which is the same on every architecture that Go runs on.
const ticksPerSecond = 100

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
	m.counters[throttle.SignalCPU], m.counters[throttle.SignalIOWait] = r.cpuTimes()
	m.counters[throttle.SignalLoad] = r.load()
	m.counters[throttle.SignalCPUPressure], _ = r.pressure("cpu") // the tasks of a whole node never all stall for CPU
	switch {
	case pods.Quota > 0:
		m.counters[throttle.SignalCPU] = r.quota(r.cgroups.CPUSeconds, pods, pods.Quota)
		m.counters[throttle.SignalCPUPressure] = r.quota(r.cgroups.CPUWaitSeconds, pods, 1)
	case !pods.CPUs.IsEmpty():
		var worked, podsWorked float64
		m.counters[throttle.SignalCPU], worked, podsWorked = r.cpuTimesOf(pods.CPUs)
		pressure := &m.counters[throttle.SignalCPUPressure]
		pressure.worked, pressure.podsWorked = worked, podsWorked
		pressure.err = cmp.Or(pressure.err, m.counters[throttle.SignalCPU].err)
	}
	m.counters[throttle.SignalMemoryPressure], m.counters[throttle.SignalMemoryFull] = r.pressure("memory")
	m.counters[throttle.SignalIOPressure], m.counters[throttle.SignalIOFull] = r.pressure("io")
	return m
}

// pressure returns how long some tasks, and all, have stalled for a resource since boot.
func (r reader) pressure(resource string) (some, full counter) {
	path := filepath.Join(r.root, "pressure", resource)
	// The clock is read beside each counter: on a starved node, time passes between two files.
	elapsed := time.Since(r.began).Seconds()
	proc, err := procfs.NewFS(r.root)
	if err != nil {
		blind := counter{err: unread(path, err)}
		return blind, blind
	}
	stats, err := proc.PSIStatsForResource(resource)
	switch {
	case errors.Is(err, procfs.ErrFileRead):
		err = unread(path, err)
	case err != nil:
		err = fmt.Errorf("%s: %w: %w", path, ErrParse, err)
	}
	stalled := func(name string, line *procfs.PSILine) counter {
		switch {
		case err != nil:
			return counter{err: err}
		case line == nil:
			return counter{err: fmt.Errorf("%s: %q: %w", path, name, ErrLine)}
		default:
			return counter{used: float64(line.Total) / 1e6, total: elapsed}
		}
	}
	return stalled("some", stats.Some), stalled("full", stats.Full)
}

// cpuTimes returns how long all CPUs together were busy and in iowait, each as a part of all their time.
func (r reader) cpuTimes() (busy, iowait counter) {
	ticks, err := firstLine(filepath.Join(r.root, "stat"), "cpu", 8)
	if err != nil {
		return counter{err: err}, counter{err: err}
	}
	user, nice, system, idle, waiting, irq, softirq, steal := ticks[0], ticks[1], ticks[2], ticks[3], ticks[4], ticks[5], ticks[6], ticks[7]
	used := (user + nice + system + irq + softirq + steal) / ticksPerSecond // user and nice include guests
	all := used + (idle+waiting)/ticksPerSecond
	return counter{used: used, total: all}, counter{used: waiting / ticksPerSecond, total: all}
}

// cpuTimesOf returns how long these CPUs were busy, as a part of all their time, and for how long all CPUs and these were
// not idle. As in the kernel's weights of CPU pressure, a CPU is not idle while one of its tasks waits for a disk.
func (r reader) cpuTimesOf(cpus cpuset.CPUSet) (busy counter, worked, these float64) {
	path := filepath.Join(r.root, "stat")
	proc, err := procfs.NewFS(r.root)
	if err != nil {
		return counter{err: unread(path, err)}, 0, 0
	}
	stat, err := proc.Stat()
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		return counter{err: unread(path, err)}, 0, 0
	} else if err != nil {
		return counter{err: fmt.Errorf("%s: %w: %w", path, ErrParse, err)}, 0, 0
	}
	for id, t := range stat.CPU {
		used := t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
		worked += used + t.Iowait
		if cpus.Contains(int(id)) {
			busy.used += used
			busy.total += used + t.Idle + t.Iowait
			these += used + t.Iowait
		}
	}
	if busy.total == 0 {
		return counter{err: fmt.Errorf("%s: CPUs %s: %w", path, cpus, ErrLine)}, 0, 0
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
func (r reader) load() counter {
	averages, err := firstLine(filepath.Join(r.root, "loadavg"), "", 3)
	if err != nil {
		return counter{err: err}
	}
	return counter{used: averages[0]}
}

// firstLine returns the numbers at the beginning of a file's first line, after its name, if it has one.
func firstLine(path, name string, count int) ([]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unread(path, err)
	}
	defer file.Close()
	line, err := bufio.NewReader(file).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unread(path, err)
	}
	fields := strings.Fields(line)
	if name != "" {
		if len(fields) == 0 || fields[0] != name {
			return nil, fmt.Errorf("%s: %q: %w", path, name, ErrLine)
		}
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%s: %w: it is empty", path, ErrLine)
	}
	if len(fields) < count {
		return nil, fmt.Errorf("%s: %w: %d numbers, expected %d", path, ErrParse, len(fields), count)
	}
	numbers := make([]float64, count)
	for i := range numbers {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return nil, fmt.Errorf("%s: %w: %q is not a number from 0", path, ErrParse, fields[i])
		}
		numbers[i] = n
	}
	return numbers, nil
}
