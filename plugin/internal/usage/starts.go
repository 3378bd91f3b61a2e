package usage

import (
	"time"

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
	// busyCores is the mean over the peakWindow from which on a start is not idle. The runtime, and a program that
	// only begins to wait, use less.
	busyCores = 0.5
)

// A StartMeter measures the starts that are under way: what each took so far, whether it makes progress, and whether
// it is quiet. A start makes no progress if for some time the pod uses little CPU, waits for a CPU only for a small
// part of the time, and moves few bytes to and from disks. It then waits for something else than this node, maybe for a
// pod in the queue. Make it with NewStartMeter. It is not safe for concurrent use.
type StartMeter struct {
	meter
	stalls StallOptions
	quiet  QuietOptions
	last   time.Time         // measurement
	pods   map[string]*start // by UID
}

// start holds the measurements of one start.
type start struct {
	samples samples
	since   time.Time // when it stopped making progress; zero if it makes progress, or if that is not known
	blind   bool      // a measurement failed, which was reported
	began   usage     // the first measurement
	took    costs.Start
	busy    bool // it is no longer idle
}

// NewStartMeter returns a StartMeter that knows no pod.
func NewStartMeter(r Roots, stalls StallOptions, quiet QuietOptions) *StartMeter {
	return &StartMeter{meter: newMeter(r), stalls: stalls, quiet: quiet, pods: map[string]*start{}}
}

// Begin reports whether a measurement is due now, and when the next is. If it is due, the caller measures all starts
// now.
func (s *StartMeter) Begin(now time.Time) (due bool, next time.Time) {
	every := min(s.stalls.Every*time.Duration(1+len(s.pods)/cheapPods), max(mostSeldom, s.stalls.Every))
	if next := s.last.Add(every); now.Before(next) {
		return false, next
	}
	s.last = now
	return true, now.Add(every)
}

// Measure measures a pod. It reads files. blind is why a part cannot be measured; it is returned once for each pod.
func (s *StartMeter) Measure(now time.Time, uid string, target Target) (blind error) {
	p := s.pods[uid]
	if p == nil {
		p = &start{}
		s.pods[uid] = p
	}
	used, err := s.usage(now, target)
	reported := p.blind
	p.blind = reported || err != nil
	if used.at.IsZero() {
		*p = start{blind: true}
	} else {
		p.add(used)
	}
	if reported {
		return nil
	}
	return err
}

// add takes a pod's usage of now.
func (p *start) add(now usage) {
	if len(p.samples) == 0 {
		p.began = now
	} else {
		step := now.since(p.samples[len(p.samples)-1])
		p.took.Waited += seconds(step.inLine)
		p.took.Disk += int64(step.moved)
	}
	p.samples = p.samples.add(now, longestWindow)
	p.took.CPU, p.took.Wall = max(p.took.CPU, seconds(now.cpu-p.began.cpu)), now.at.Sub(p.began.at)
	if took, used, full := p.samples.usedIn(peakWindow); full {
		cores := used.wanted() / took.Seconds() // that it kept busy, or would have
		p.took.Peak = max(p.took.Peak, cores)
		if !p.busy && cores >= busyCores {
			p.busy, p.took.Idle = true, p.took.Wall-took
		}
	}
}

// Took returns what a start took since its first measurement. known is false if a measurement is missing.
func (s *StartMeter) Took(uid string) (took costs.Start, known bool) {
	p := s.pods[uid]
	if p == nil || p.blind || p.took.Wall <= 0 {
		return costs.Start{}, false
	}
	took = p.took
	wanted := took.CPU + took.Waited
	if took.Wall < peakWindow {
		took.Peak = wanted.Seconds() / took.Wall.Seconds()
	}
	if !p.busy { // it was never busy for long: all the time in which it did not want a CPU was idle
		took.Idle = max(0, took.Wall-wanted)
	}
	return took, true
}

// Use returns what a start that is under way has used, for the adaptive limit. known is false if a measurement is
// missing.
func (s *StartMeter) Use(uid string) (use adaptive.Use, known bool) {
	p := s.pods[uid]
	if p == nil || p.blind || p.took.Wall <= 0 {
		return adaptive.Use{}, false
	}
	took, used, _ := p.samples.usedIn(peakWindow)
	span := max(took, peakWindow).Seconds()
	return adaptive.Use{
		CPU: p.took.CPU, Disk: p.took.Disk, Cores: used.wanted() / span, Reads: used.moved / span,
		Waited: used.inLine / span, WaitedKnown: len(p.samples[len(p.samples)-1].inLine) > 0,
	}, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// StalledSince returns when a pod stopped making progress, by its last measurement, or zero if it makes progress or
// cannot be measured. Call it after each measurement, or it misses progress. lentAfter is how long a start must make no
// progress until a slot is lent.
func (s *StartMeter) StalledSince(uid string, lentAfter time.Duration) time.Time {
	p := s.pods[uid]
	if p == nil {
		return time.Time{}
	}
	took, used, full := p.samples.usedIn(min(max(lentAfter/2, shortestWindow), longestWindow))
	span := took.Seconds()
	switch {
	case !full:
	case used.cpu >= s.stalls.Cores*span || used.inLine >= s.stalls.InLine*span || used.moved >= s.stalls.Bytes*span,
		p.samples[len(p.samples)-1].moved == nil: // not known
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = p.samples[len(p.samples)-1].at.Add(-took)
	}
	return p.since
}

// Quiet reports whether a pod used little CPU lately, and waited little for one: a pod that starves uses little, too. A
// pod whose CPU use cannot be measured counts as quiet. One that was never measured does not.
func (s *StartMeter) Quiet(uid string) bool {
	p := s.pods[uid]
	if p == nil {
		return false
	}
	took, used, full := p.samples.usedIn(s.quiet.Window)
	return len(p.samples) == 0 || full && used.wanted() < s.quiet.Cores*took.Seconds()
}

// Forget drops the measurements of a pod.
func (s *StartMeter) Forget(uid string) { delete(s.pods, uid) }
