package sensor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/load"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// reader reads the counters of a node.
type reader struct {
	root string
	host context.Context // the same, for gopsutil
	// began is what the clock of the pressure counters counts from.
	began time.Time
}

func newReader(root string) reader {
	env := common.EnvMap{common.HostProcEnvKey: root}
	return reader{root: root, host: context.WithValue(context.Background(), common.EnvKey, env), began: time.Now()}
}

// read takes a sample. Every file that cannot be read is an error in its counters.
func (r reader) read() moment {
	m := moment{at: time.Now()}
	busy, iowait, err := r.cpuTimes()
	m.set(throttle.SignalCPU, busy, err)
	m.set(throttle.SignalIOWait, iowait, err)
	load, err := r.load()
	m.set(throttle.SignalLoad, counter{part: load}, err)
	for _, p := range [...]struct {
		resource   string
		some, full throttle.Signal
	}{
		{"cpu", throttle.SignalCPUPressure, none},
		{"memory", throttle.SignalMemoryPressure, throttle.SignalMemoryFull},
		{"io", throttle.SignalIOPressure, throttle.SignalIOFull},
	} {
		// The clock is read beside the counter: whoever measures a starved node
		// starves, too.
		elapsed := time.Since(r.began).Seconds()
		stats, err := r.pressure(p.resource)
		path := r.pressurePath(p.resource)
		m.setStalled(p.some, path, "some", stats.Some, elapsed, err)
		if p.full != none {
			m.setStalled(p.full, path, "full", stats.Full, elapsed, err)
		}
	}
	return m
}

// none is no signal: all tasks of a whole node never stall for CPU at once.
const none throttle.Signal = -1

func (m *moment) set(signal throttle.Signal, c counter, err error) {
	c.err = err
	m.counters[signal] = c
}

func (m *moment) setStalled(signal throttle.Signal, path, line string, psi *procfs.PSILine, elapsed float64, err error) {
	if err == nil && psi == nil {
		err = fmt.Errorf("%s: %q: %w", path, line, ErrLine)
	}
	var c counter
	if err == nil {
		c = counter{part: float64(psi.Total) / 1e6, whole: elapsed}
	}
	m.set(signal, c, err)
}

func (r reader) pressurePath(resource string) string {
	return filepath.Join(r.root, "pressure", resource)
}

// pressure gives what tasks stalled for one resource since boot.
func (r reader) pressure(resource string) (procfs.PSIStats, error) {
	path := r.pressurePath(resource)
	proc, err := procfs.NewFS(r.root)
	if err != nil {
		return procfs.PSIStats{}, unread(path, err)
	}
	stats, err := proc.PSIStatsForResource(resource)
	switch {
	case errors.Is(err, procfs.ErrFileRead):
		return procfs.PSIStats{}, unread(path, err)
	case err != nil:
		return procfs.PSIStats{}, fmt.Errorf("%s: %w: %w", path, ErrParse, err)
	}
	return stats, nil
}

// cpuTimes gives the time that all CPUs together were busy and in iowait, each as a
// part of all their time.
func (r reader) cpuTimes() (busy, iowait counter, err error) {
	path := filepath.Join(r.root, "stat")
	times, err := cpu.TimesWithContext(r.host, false)
	if err != nil {
		return counter{}, counter{}, fmt.Errorf("%s: %w: %w", path, ErrParse, err)
	}
	if len(times) == 0 {
		// gopsutil keeps to itself what went wrong.
		if err = firstLine(path, "cpu", 7); err == nil {
			err = fmt.Errorf("%s: %w", path, ErrParse)
		}
		return counter{}, counter{}, err
	}
	t := times[0]
	if t.CPU != "cpu-total" {
		return counter{}, counter{}, fmt.Errorf("%s: %q: %w", path, "cpu", ErrLine)
	}
	// Time of guests is a part of user and nice.
	used := t.User + t.Nice + t.System + t.Irq + t.Softirq + t.Steal
	all := used + t.Idle + t.Iowait
	if lowest := min(t.User, t.Nice, t.System, t.Irq, t.Softirq, t.Steal, t.Idle, t.Iowait); !(lowest >= 0) || math.IsInf(all, 0) {
		return counter{}, counter{}, fmt.Errorf("%s: %w: a time is not a number from 0", path, ErrParse)
	}
	return counter{part: used, whole: all}, counter{part: t.Iowait, whole: all}, nil
}

// load gives the load average over one minute.
func (r reader) load() (float64, error) {
	path := filepath.Join(r.root, "loadavg")
	// gopsutil asks its own kernel where the file is no good, and panics where it
	// is empty: the file is looked at before.
	if err := firstLine(path, "", 3); err != nil {
		return 0, err
	}
	avg, err := load.AvgWithContext(r.host)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %w", path, ErrParse, err)
	}
	return avg.Load1, nil
}

// firstLine says what is wrong with a file's first line, which should be a name
// (or none) and so many numbers from 0.
func firstLine(path, name string, numbers int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return unread(path, err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if name != "" {
		if len(fields) == 0 || fields[0] != name {
			return fmt.Errorf("%s: %q: %w", path, name, ErrLine)
		}
		fields = fields[1:]
	}
	if len(fields) == 0 {
		return fmt.Errorf("%s: %w: it is empty", path, ErrLine)
	}
	if len(fields) < numbers {
		return fmt.Errorf("%s: %w: %d numbers, expected %d", path, ErrParse, len(fields), numbers)
	}
	for _, field := range fields[:numbers] {
		if n, err := strconv.ParseFloat(field, 64); err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return fmt.Errorf("%s: %w: %q is not a number from 0", path, ErrParse, field)
		}
	}
	return nil
}
