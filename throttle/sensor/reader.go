package sensor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// ticksPerSecond is the unit of /proc/stat, USER_HZ, which is the same on every architecture that Go runs on.
const ticksPerSecond = 100

// reader reads the counters of a node.
type reader struct {
	root string
	// began is what the clock of the pressure counters counts from.
	began time.Time
}

func newReader(root string) reader { return reader{root: root, began: time.Now()} }

// read takes a sample. A file that cannot be read sets the error of its counters.
func (r reader) read() moment {
	m := moment{at: time.Now()}
	m.counters[throttle.SignalCPU], m.counters[throttle.SignalIOWait] = r.cpuTimes()
	m.counters[throttle.SignalLoad] = r.load()
	m.counters[throttle.SignalCPUPressure], _ = r.pressure("cpu") // the tasks of a whole node never all stall for CPU
	m.counters[throttle.SignalMemoryPressure], m.counters[throttle.SignalMemoryFull] = r.pressure("memory")
	m.counters[throttle.SignalIOPressure], m.counters[throttle.SignalIOFull] = r.pressure("io")
	return m
}

// pressure returns how long some tasks, and all, have stalled for a resource since boot.
func (r reader) pressure(resource string) (some, full counter) {
	path := filepath.Join(r.root, "pressure", resource)
	// The clock is read beside each counter: on a starved node, time passes between two files.
	elapsed := time.Since(r.began).Seconds()
	stats, err := r.stalls(resource)
	stalled := func(name string, line *procfs.PSILine) counter {
		switch {
		case err != nil:
			return counter{err: unread(path, err)}
		case line == nil:
			return counter{err: fmt.Errorf("%s: it has no line %q", path, name)}
		default:
			return counter{part: float64(line.Total) / 1e6, whole: elapsed}
		}
	}
	return stalled("some", stats.Some), stalled("full", stats.Full)
}

func (r reader) stalls(resource string) (procfs.PSIStats, error) {
	proc, err := procfs.NewFS(r.root)
	if err != nil {
		return procfs.PSIStats{}, err
	}
	return proc.PSIStatsForResource(resource)
}

// unread wraps the error with which a file was read.
func unread(path string, err error) error {
	if errors.Is(err, syscall.EOPNOTSUPP) { // the kernel has PSI, and was built to have it off
		return fmt.Errorf("%s: PSI is disabled, the kernel needs psi=1 on its command line: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// cpuTimes returns how long all CPUs together were busy and in iowait, each as a part of all their time.
func (r reader) cpuTimes() (busy, iowait counter) {
	var user, nice, system, idle, waiting, irq, softirq, steal uint64
	err := scan(filepath.Join(r.root, "stat"), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &waiting, &irq, &softirq, &steal)
	if err != nil {
		return counter{err: err}, counter{err: err}
	}
	seconds := func(times ...uint64) (sum float64) {
		for _, ticks := range times {
			sum += float64(ticks) / ticksPerSecond
		}
		return sum
	}
	used := seconds(user, nice, system, irq, softirq, steal) // user and nice include guests
	all := used + seconds(idle, waiting)
	return counter{part: used, whole: all}, counter{part: seconds(waiting), whole: all}
}

// load returns the load average over one minute.
func (r reader) load() counter {
	path := filepath.Join(r.root, "loadavg")
	var average float64
	err := scan(path, "%f ", &average)
	if err == nil && !(average >= 0) {
		err = fmt.Errorf("%s: the load is %f", path, average)
	}
	return counter{part: average, err: err}
}

// scan scans the beginning of a file with a format of package fmt.
func scan(path, format string, into ...any) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := fmt.Fscanf(bufio.NewReader(file), format, into...); err != nil {
		return unread(path, err)
	}
	return nil
}
