package usage

import (
	"time"

	"github.com/prometheus/procfs"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// StallOptions are the thresholds below which a pod makes no progress. The zero value is invalid; see DefaultStalls.
//
// The defaults lie above what a pod uses while it waits for another: for kubelet's probes (2.9 % of a core was
// measured with a small program executed every second), and for its attempts to reach the other pod. A start that uses
// less than a tenth of a core leaves room for another, whatever it does. A pod that starves waits for a CPU nearly all
// the time. On a busy node, a pod that polls does so for a good part of the time.
type StallOptions struct {
	// A pod makes no progress if it uses fewer than Cores, waits for a CPU for a smaller share of the time than InLine
	// (1: all the time), and moves fewer than Bytes per second to and from disks.
	Cores, InLine, Bytes float64
	// Every is the time between two measurements of fewer than 16 pods. With more pods it is longer, up to a second.
	Every time.Duration
}

// DefaultStalls returns the options of the daemon.
func DefaultStalls() StallOptions {
	return StallOptions{Cores: 0.1, InLine: 0.5, Bytes: 64 << 10, Every: 250 * time.Millisecond}
}

// QuietOptions are the thresholds below which a pod is quiet. The zero value is invalid; see DefaultQuiet.
type QuietOptions struct {
	// A pod is quiet if it uses and waits for fewer than Cores, as a mean over Window. Window is at most 5 s.
	Cores  float64
	Window time.Duration
}

// DefaultQuiet returns the options of the daemon.
func DefaultQuiet() QuietOptions { return QuietOptions{Cores: 0.2, Window: 2 * time.Second} }

// Limits of the window in which a pod makes progress or not.
const (
	shortestWindow = time.Second
	longestWindow  = 5 * time.Second
)

// Few pods are measured as often as the node. Slower measurement made herds of known kinds up to a fifth slower in
// simulation. Many pods are measured once a second.
const (
	cheapPods  = 16 // for each further 16, measurements come less often, by StallOptions.Every
	mostSeldom = time.Second
)

const (
	// peakWindow is the window of the mean that is Peak in costs.Start.
	peakWindow = 2 * time.Second
	// A start is no longer idle when, as means over the peakWindow, it wants busyCores and gets ranCores of them. The
	// runtime, and a program that only begins to wait, use less. On a full node, they wait for a CPU for seconds.
	busyCores, ranCores = 0.5, 0.1
)

// A Meter measures the starts that are under way: what each took so far, whether it makes progress, and whether
// it is quiet. A start makes no progress if for some time the pod uses little CPU, waits for a CPU only for a small
// part of the time, and moves few bytes to and from disks. It then waits for something else than this node, maybe for a
// pod in the queue. Make it with NewMeter. It is not safe for concurrent use.
type Meter struct {
	cgroups cgroup.Reader
	root    string // where the host's /proc is
	proc    procfs.FS
	noProc  error // why proc cannot be read
	stalls  StallOptions
	quiet   QuietOptions
	last    time.Time // measurement
}

// Start holds the measurements of one start. The zero value was never measured. It is not safe for concurrent use.
type Start struct {
	samples  samples   // since the latest measurement that failed
	since    time.Time // when it stopped making progress; zero if it makes progress, or if that is not known
	failed   bool      // the latest measurement, at least in part
	gap      bool      // an earlier measurement failed
	reported bool      // that a measurement failed
	began    usage     // the first measurement
	took     costs.Start
	busy     bool // it is no longer idle
}

// NewMeter returns a Meter.
func NewMeter(r Roots, stalls StallOptions, quiet QuietOptions) *Meter {
	proc, err := procfs.NewFS(r.Proc)
	return &Meter{cgroups: cgroup.Reader{Root: r.Cgroup}, root: r.Proc, proc: proc, noProc: err, stalls: stalls, quiet: quiet}
}

// Begin reports whether a measurement of a number of starts is due now, and when the next is. If it is due, the caller
// measures all of them now.
func (m *Meter) Begin(now time.Time, starts int) (due bool, next time.Time) {
	every := min(m.stalls.Every*time.Duration(1+starts/cheapPods), max(mostSeldom, m.stalls.Every))
	if next := m.last.Add(every); now.Before(next) {
		return false, next
	}
	m.last = now
	return true, now.Add(every)
}

// Measure measures a start. It reads files. blind is why a part cannot be measured; it is returned once for each start.
func (m *Meter) Measure(now time.Time, s *Start, target Target) (blind error) {
	used, err := m.usage(now, target)
	unseen := used.at.IsZero()
	if unseen || s.failed && err == nil { // what it used meanwhile is not known in full
		s.samples, s.since = nil, time.Time{}
	}
	s.gap = s.gap || s.failed
	s.failed = err != nil
	if !unseen {
		s.add(used)
	}
	if s.reported {
		return nil
	}
	s.reported = s.failed
	return err
}

// add takes a pod's usage of now.
func (s *Start) add(now usage) {
	if s.began.at.IsZero() {
		s.began = now
	}
	if len(s.samples) > 0 {
		last := s.samples[len(s.samples)-1]
		step := now.since(last)
		if !s.busy { // What it waited for a CPU does not count, so the time is as long as on an idle node.
			s.took.Idle += max(0, now.at.Sub(last.at)-seconds(step.cpu+step.inLine))
		}
		s.took.Waited += seconds(step.inLine)
		s.took.Disk += int64(step.moved)
	}
	s.samples = s.samples.add(now, longestWindow)
	s.took.CPU, s.took.Wall = max(s.took.CPU, seconds(now.cpu-s.began.cpu)), now.at.Sub(s.began.at)
	if took, used, full := s.samples.usedIn(peakWindow); full {
		cores := used.wanted() / took.Seconds() // that it kept busy, or would have
		s.took.Peak = max(s.took.Peak, cores)
		s.busy = s.busy || cores >= busyCores && used.cpu >= ranCores*took.Seconds()
	}
}

// Took returns what a start took since its first measurement. known is false if a measurement is missing, but for the
// latest: a pod that ends takes its files with it.
func (s *Start) Took() (took costs.Start, known bool) {
	if s.gap || s.took.Wall <= 0 {
		return costs.Start{}, false
	}
	took = s.took
	if took.Wall < peakWindow {
		took.Peak = (took.CPU + took.Waited).Seconds() / took.Wall.Seconds()
	}
	return took, true
}

// Use returns what a start that is under way has used, for the adaptive limit. known is false if the latest measurement
// failed, or if it has none before to compare with.
func (s *Start) Use() (use adaptive.Use, known bool) {
	if s.failed || len(s.samples) < 2 {
		return adaptive.Use{}, false
	}
	took, used, _ := s.samples.usedIn(peakWindow)
	span := max(took, peakWindow).Seconds()
	return adaptive.Use{
		CPU: s.took.CPU, Delayed: s.took.Waited, Disk: s.took.Disk, Cores: used.wanted() / span, Reads: used.moved / span,
		Waited: used.inLine / span, WaitedKnown: len(s.samples[len(s.samples)-1].inLine) > 0,
	}, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// StalledSince returns when a start stopped making progress, by its last measurement, or zero if it makes progress or
// cannot be measured. Call it after each measurement, or it misses progress. lentAfter is how long a start must make no
// progress until a slot is lent.
func (m *Meter) StalledSince(s *Start, lentAfter time.Duration) time.Time {
	took, used, full := s.samples.usedIn(min(max(lentAfter/2, shortestWindow), longestWindow))
	span := took.Seconds()
	switch {
	case !full:
	case used.cpu >= m.stalls.Cores*span || used.inLine >= m.stalls.InLine*span || used.moved >= m.stalls.Bytes*span,
		s.samples[len(s.samples)-1].moved == nil: // not known
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = s.samples[len(s.samples)-1].at.Add(-took)
	}
	return s.since
}

// Quiet reports whether a start used little CPU lately, and waited little for one: a pod that starves uses little, too. One
// whose CPU use cannot be measured counts as quiet. One that was never measured does not.
func (m *Meter) Quiet(s *Start) bool {
	took, used, full := s.samples.usedIn(m.quiet.Window)
	return len(s.samples) == 0 && s.failed || full && used.wanted() < m.quiet.Cores*took.Seconds()
}
