package plugin

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// values are the values of all signals, by signal.
type values [len(throttle.Signals{})]float64

// host is the kernel of the node, as far as it tells how busy the node is. Its files have a fixed size, and are written
// in place.
type host struct {
	cores float64
	files map[string]*os.File

	mu                  sync.Mutex
	others              map[time.Duration]shapes.Load // by when it began
	idle, busy, waiting float64                       // ticks of all CPUs
	average             float64
	stalled             values // µs
}

// The files of a host, and the counters in them.
const (
	statFormat     = "cpu  %015d 0 0 %015d %015d 0 0 0 0 0\ncpu0 10 0 10 1000 0 0 0 0 0 0\nbtime 946684800\n"
	loadFormat     = "%015.2f 0.00 0.00 1/100 1\n"
	pressureFormat = "some avg10=0.00 avg60=0.00 avg300=0.00 total=%015d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%015d\n"
)

// newHost writes the files of an idle node.
func newHost(t require.TestingT, root string, cores int) *host {
	h := &host{cores: float64(cores), files: map[string]*os.File{}, others: map[time.Duration]shapes.Load{}, idle: 1000}
	for _, name := range []string{"stat", "loadavg", "pressure/cpu", "pressure/memory", "pressure/io"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		file, err := os.Create(path)
		require.NoError(t, err)
		h.files[name] = file
	}
	require.NoError(t, h.write())
	return h
}

func (h *host) close() {
	for _, file := range h.files {
		_ = file.Close() // it was written at once
	}
}

// bears adds a load, or takes it away.
func (h *host) bears(f shapes.Fault, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.others, f.At); begins {
		h.others[f.At] = f.Load
	}
}

// goOn lets a time pass while the pods that start use so many CPUs, and returns what the signals are meanwhile.
func (h *host) goOn(passed time.Duration, used float64) (values, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sum shapes.Load
	for _, l := range h.others {
		sum = shapes.Load{CPU: sum.CPU + l.CPU, IOWait: sum.IOWait + l.IOWait, Memory: sum.Memory + l.Memory, IO: sum.IO + l.IO}
	}
	used += sum.CPU / 100 * h.cores
	var v values
	v[throttle.SignalCPU] = min(100, 100*used/h.cores)
	v[throttle.SignalIOWait] = min(sum.IOWait, 100-v[throttle.SignalCPU])
	h.average += (used - h.average) * (1 - math.Exp(-passed.Minutes()))
	v[throttle.SignalLoad] = h.average
	v[throttle.SignalCPUPressure] = 100 * max(0, 1-h.cores/max(used, h.cores))
	v[throttle.SignalMemoryPressure], v[throttle.SignalMemoryFull] = min(100, sum.Memory), min(100, sum.Memory)/2
	v[throttle.SignalIOPressure], v[throttle.SignalIOFull] = min(100, sum.IO), min(100, sum.IO)/2
	ticks := 100 * passed.Seconds() * h.cores
	h.busy += ticks * v[throttle.SignalCPU] / 100
	h.waiting += ticks * v[throttle.SignalIOWait] / 100
	h.idle += ticks * (100 - v[throttle.SignalCPU] - v[throttle.SignalIOWait]) / 100
	for i := range v {
		h.stalled[i] += float64(passed.Microseconds()) * v[i] / 100
	}
	return v, h.write()
}

func (h *host) write() error {
	us := func(s throttle.Signal) int64 { return int64(h.stalled[s]) }
	for name, text := range map[string]string{
		"stat":            fmt.Sprintf(statFormat, int64(h.busy), int64(h.idle), int64(h.waiting)),
		"loadavg":         fmt.Sprintf(loadFormat, h.average),
		"pressure/cpu":    fmt.Sprintf(pressureFormat, us(throttle.SignalCPUPressure), 0),
		"pressure/memory": fmt.Sprintf(pressureFormat, us(throttle.SignalMemoryPressure), us(throttle.SignalMemoryFull)),
		"pressure/io":     fmt.Sprintf(pressureFormat, us(throttle.SignalIOPressure), us(throttle.SignalIOFull)),
	} {
		if _, err := h.files[name].WriteAt([]byte(text), 0); err != nil {
			return err
		}
	}
	return nil
}

// hostTicks is how often the counters of a node go on. They do so between the moments at which the daemon is likely to look.
const (
	hostTicks  = 100 * time.Millisecond
	hostsPhase = 7*time.Millisecond + 11*time.Microsecond
)

// loads lets the counters go on until stop is closed.
func (b *bubble) loads(stop <-chan struct{}) {
	time.Sleep(hostsPhase)
	tick := time.NewTicker(hostTicks)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			v, err := b.host.goOn(hostTicks, b.seen.used(now))
			if err != nil {
				b.t.Errorf("the counters of the host: %v", err)
				return
			}
			b.seen.measures(now, v)
		}
	}
}

// used returns how many CPUs the pods use that start.
func (j *judge) used(now time.Time) (cpus float64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pods {
		if s := p.start; s != nil && len(s.ready) < p.shape.Containers && now.Sub(s.latest) < p.shape.Work() {
			cpus += float64(max(s.processes, 0)) * p.shape.Cores
		}
	}
	return cpus
}

// The times of a signal: by when the daemon has surely measured what it is, and for how long a start may count that the
// signal does not show yet.
const (
	measuredWithin = 15 * time.Second
	shownWithin    = 15 * time.Second
	loadShownAfter = 5 * time.Minute
	measureErrs    = 2 // percent of the node, or of the limit
)

// measures sees what the signals are, and notes since when the limit on one surely holds starts, or surely does not.
func (j *judge) measures(now time.Time, v values) {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.inForce[len(j.inForce)-1].Limits
	value, margin := v[l.Signal], float64(measureErrs)
	if l.Signal == throttle.SignalLoad {
		margin = l.Most * measureErrs / 100
	}
	j.starts = slices.DeleteFunc(j.starts, func(at time.Time) bool { return now.Sub(at) >= loadShownAfter })
	owed := 0.0
	for _, at := range j.starts {
		switch {
		case l.Signal == throttle.SignalLoad:
			owed += math.Exp(-(now.Sub(at) - shownWithin).Minutes())
		case now.Sub(at) < shownWithin:
			owed++
		}
	}
	holds, open := value >= l.Most+margin, value+l.Increment*owed < l.Most-margin
	if l.Signal == throttle.SignalCPUPressure { // it counts only while the CPUs are in use
		holds = holds && v[throttle.SignalCPU] > defaultMinUtilization+margin
		open = open || v[throttle.SignalCPU] < defaultMinUtilization-margin
	}
	since := func(t *time.Time, is bool) {
		switch {
		case !is || l.Most == 0:
			*t = time.Time{}
		case t.IsZero():
			*t = now
		}
	}
	since(&j.closed, holds)
	since(&j.open, open)
	j.measured = append(slices.DeleteFunc(j.measured, func(m measured) bool { return now.Sub(m.at) > measuredWithin }), measured{now, value})
}

// measured is what a signal was at a time.
type measured struct {
	at    time.Time
	value float64
}

// judgeDebtLocked judges that a start begins only if the limit on a signal allows it beside what the starts before it
// add. Two that were admitted within owesFor count for each other: the daemon measures over a longer time.
func (j *judge) judgeDebtLocked(p *podSeen, arrived time.Time, unpaced bool) {
	const owesFor = 200 * time.Millisecond
	now, l := time.Now(), j.inForce[len(j.inForce)-1].Limits
	if unpaced || !j.steadyLocked(p.asked) || p.asked.Before(j.steady) {
		return
	}
	owed := 0.0
	for _, at := range j.admitted {
		switch age := p.asked.Sub(at); {
		case at.Before(j.steady), age < -owesFor:
		case l.Signal == throttle.SignalLoad:
			owed += l.Increment * math.Exp(-max(0, age.Minutes()))
		case age.Abs() <= owesFor:
			owed += l.Increment
		}
	}
	j.admitted = append(j.admitted, p.asked)
	n := len(j.measured)
	if p.takesSlotWithSandbox() || l.Most == 0 || l.Increment == 0 || !l.Enforced() || p.shape.Exempt() || n == 0 || now.Sub(j.measured[0].at) < measuredWithin || j.overdue(arrived, p.asked) || j.overdueNowLocked(now) {
		return
	}
	least := slices.MinFunc(j.measured, func(a, b measured) int { return cmp.Compare(a.value, b.value) }).value
	if least+owed > l.Most*(1+measureErrs/100.) {
		j.complainLocked(debtKept, "%s starts while %s is at least %g and the starts before it add %g, of %g", p.shape.Name, l.Signal, least, owed, l.Most)
	}
}

// defaultMinUtilization is the CPU use above which the limit on CPU pressure counts.
const defaultMinUtilization = 70

// signalOpenLocked reports whether no limit on a signal holds a start.
func (j *judge) signalOpenLocked(now time.Time) bool {
	return j.inForce[len(j.inForce)-1].Most == 0 || !j.open.IsZero() && now.Sub(j.open) > measuredWithin
}

// judgeSignalLocked judges that a start begins only while the limit on a signal allows it, or, one at a time, after
// maxWait. It reports whether it is over that limit.
func (j *judge) judgeSignalLocked(p *podSeen, arrived time.Time, unpaced bool) (over bool) {
	now, l := time.Now(), j.inForce[len(j.inForce)-1].Limits
	if p.passed.IsZero() { // else it owes since it left the gate
		j.starts = append(j.starts, now)
	}
	if l.Most == 0 || !l.Enforced() || unpaced || p.shape.Exempt() || j.closed.IsZero() || p.asked.Sub(j.closed) < measuredWithin || p.asked.Sub(j.steady) < settled {
		return false
	}
	if !j.overdue(arrived, p.asked) && !j.overdueNowLocked(now) {
		j.complainLocked(signalKept, "%s starts after a wait of %s, while %s is above %g since %s", p.shape.Name, now.Sub(arrived), l.Signal, l.Most, now.Sub(j.closed))
		return false
	}
	j.excepted["maxWait over a signal"]++
	for _, q := range j.pods {
		if q != p && q.start != nil && q.start.overSignal && q.start.began.After(j.steady) && j.surely(q, now) {
			j.complainLocked(signalKept, "%s starts for its maxWait, beside %s, while %s is above %g", p.shape.Name, q.shape.Name, l.Signal, l.Most)
		}
	}
	return true
}
