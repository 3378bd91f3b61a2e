package usage

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// StallOptions say when a pod makes no progress. The zero value is not valid; see DefaultStalls.
//
// The default bounds lie above what a pod uses that waits: for kubelet's probes (2.9 % of a
// core was measured with a small program executed in it every second), and for its own
// tries to reach what it waits for. A start that uses less than a tenth of a core
// leaves room for another, whatever it does. One that starves stands in line nearly
// all the time; on a busy node, one that only looks now and then whether it may go on
// does so for a good part of it.
type StallOptions struct {
	Cores  float64       // the pod used fewer cores than this
	InLine float64       // and stood in line for a CPU for a smaller share of the time
	Bytes  float64       // and moved fewer bytes in a second to and from disks
	Every  time.Duration // between two measurements, of up to 16 pods; of more the time is longer, up to a second
}

// DefaultStalls is what the daemon uses.
func DefaultStalls() StallOptions {
	return StallOptions{Cores: 0.1, InLine: 0.5, Bytes: 64 << 10, Every: 250 * time.Millisecond}
}

// QuietOptions say when a pod is quiet. The zero value is not valid; see DefaultQuiet.
type QuietOptions struct {
	Cores  float64       // the pod wanted fewer cores than this
	Window time.Duration // over this time; at most 5 s
}

// DefaultQuiet is what the daemon uses.
func DefaultQuiet() QuietOptions { return QuietOptions{Cores: 0.2, Window: 2 * time.Second} }

// Bounds of the time over which it is judged whether a pod makes progress.
const (
	shortestWindow = time.Second
	longestWindow  = 5 * time.Second
)

// Measurements of few pods come as often as those of the node, as the adaptive limit compares both: where all that
// starts used within a second counts at once, it is taken for too little before, and herds of kinds that are known take up to
// a fifth longer on the simulated node. Of many pods that would cost too much.
const (
	cheapPods  = 16
	mostSeldom = time.Second
)

const (
	// peakWindow is the time over which the mean is taken that costs.Start calls peak.
	peakWindow = 2 * time.Second
	// busyCores is from which mean over the peakWindow on a start does not idle. The runtime and a
	// program that only begins to wait use less.
	busyCores = 0.5
)

// A StartMeter measures the starts that are under way: what each took so far, whether it makes
// progress, and whether it is quiet. A start makes none if, over a time, the pod used little
// CPU, did not stand in line for it most of the time, and moved little to and from
// disks. What keeps it from going on is then something else than this node, maybe a
// pod that waits for its turn. Make it with NewStartMeter. It is not safe for concurrent use.
type StartMeter struct {
	meter
	stalls StallOptions
	quiet  QuietOptions
	last   time.Time         // measurement
	pods   map[string]*start // by UID
}

// start is what the measurements of one start say.
type start struct {
	samples samples
	since   time.Time // it makes no progress since; zero: it does, or that is not known
	blind   bool      // it could not be measured whole, which was said
	began   usage     // the first measurement
	took    costs.Start
	busy    bool // it does not idle any more
}

// NewStartMeter returns a StartMeter that knows no pod.
func NewStartMeter(r Roots, stalls StallOptions, quiet QuietOptions) *StartMeter {
	return &StartMeter{meter: newMeter(r), stalls: stalls, quiet: quiet, pods: map[string]*start{}}
}

// Begin reports whether pods are to be measured now, and when next.
func (s *StartMeter) Begin(now time.Time) (due bool, next time.Time) {
	every := min(s.stalls.Every*time.Duration(1+len(s.pods)/cheapPods), max(mostSeldom, s.stalls.Every))
	if next := s.last.Add(every); now.Before(next) {
		return false, next
	}
	s.last = now
	return true, now.Add(every)
}

// Measure measures a pod. blind is what of it cannot be measured, the first time. It reads files.
func (s *StartMeter) Measure(now time.Time, uid string, place Place) (blind error) {
	p := s.pods[uid]
	if p == nil {
		p = &start{}
		s.pods[uid] = p
	}
	used, err := s.usage(now, place)
	said := p.blind
	p.blind = said || err != nil
	if used.at.IsZero() {
		*p = start{blind: true}
	} else {
		p.add(used)
	}
	if said {
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
	p.took.CPU, p.took.Wall = seconds(max(0, now.cpu-p.began.cpu)), now.at.Sub(p.began.at)
	if took, used, full := p.samples.over(peakWindow); full {
		cores := used.wanted() / took.Seconds() // that it kept busy, or would have
		p.took.Peak = max(p.took.Peak, cores)
		if !p.busy && cores >= busyCores {
			p.busy, p.took.Idle = true, p.took.Wall-took
		}
	}
}

// Took returns what a start took since it was first measured. False: it was not, or could not be
// all the time.
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
	if !p.busy { // it was never busy for long: all that it did not want was idle
		took.Idle = max(0, took.Wall-wanted)
	}
	return took, true
}

// Use returns what a start that is under way has used, for the adaptive limit. False: it was not measured, or could not be
// all the time.
func (s *StartMeter) Use(uid string) (use adaptive.Use, known bool) {
	p := s.pods[uid]
	if p == nil || p.blind || p.took.Wall <= 0 {
		return adaptive.Use{}, false
	}
	took, used, _ := p.samples.over(peakWindow)
	over := max(took, peakWindow).Seconds()
	return adaptive.Use{CPU: p.took.CPU, Disk: p.took.Disk, Cores: used.wanted() / over, Reads: used.moved / over}, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// StalledSince returns since when a pod makes no progress, by its last measurement, where a slot would
// be lent after so long without. A pod that cannot be measured is taken to make some: zero.
func (s *StartMeter) StalledSince(uid string, lentAfter time.Duration) time.Time {
	p := s.pods[uid]
	if p == nil {
		return time.Time{}
	}
	took, used, full := p.samples.over(min(max(lentAfter/2, shortestWindow), longestWindow))
	over := took.Seconds()
	switch {
	case !full:
	case used.cpu >= s.stalls.Cores*over || used.inLine >= s.stalls.InLine*over || used.moved >= s.stalls.Bytes*over,
		p.samples[len(p.samples)-1].moved == nil: // which is not known
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = p.samples[len(p.samples)-1].at.Add(-took)
	}
	return p.since
}

// Quiet reports whether a pod that was measured used little CPU lately, and stood in line for little: on a
// node that is short of CPU, a pod that starves uses little, too. One whose CPU use cannot be measured
// counts as quiet.
func (s *StartMeter) Quiet(uid string) bool {
	p := s.pods[uid]
	if p == nil {
		return false
	}
	took, used, full := p.samples.over(s.quiet.Window)
	return len(p.samples) == 0 || full && used.wanted() < s.quiet.Cores*took.Seconds()
}

// Forget drops what was measured of a pod.
func (s *StartMeter) Forget(uid string) { delete(s.pods, uid) }
