package usage

import "time"

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
	Every  time.Duration // between two measurements
}

// DefaultStalls is what the daemon uses.
func DefaultStalls() StallOptions {
	return StallOptions{Cores: 0.1, InLine: 0.5, Bytes: 64 << 10, Every: time.Second}
}

// Bounds of the time over which a pod is measured.
const (
	shortestWindow = time.Second
	longestWindow  = 5 * time.Second
)

// Stalls finds the starts that make no progress: over a time, the pod used little
// CPU, did not stand in line for it most of the time, and moved little to and from
// disks. What keeps it from going on is then something else than this node, maybe a
// pod that waits for its turn. Make it with NewStalls. It is not safe for concurrent use.
type Stalls struct {
	meter
	StallOptions
	last time.Time            // measurement
	pods map[string]*stallPod // by UID
}

// stallPod is what the measurements of one pod say.
type stallPod struct {
	samples samples
	since   time.Time // it makes no progress since; zero: it does, or that is not known
	blind   bool      // it could not be measured, which was said
}

// NewStalls returns a Stalls that knows no pod.
func NewStalls(r Roots, o StallOptions) *Stalls {
	return &Stalls{meter: newMeter(r), StallOptions: o, pods: map[string]*stallPod{}}
}

// Begin reports whether pods are to be measured now, and when next.
func (s *Stalls) Begin(now time.Time) (due bool, next time.Time) {
	if next := s.last.Add(s.Every); now.Before(next) {
		return false, next
	}
	s.last = now
	return true, now.Add(s.Every)
}

// Measure measures a pod, and returns since when it makes no progress, where a slot would be lent
// after so long without. A pod that cannot be measured is taken to make some; blind is why, the
// first time. It reads files.
func (s *Stalls) Measure(now time.Time, uid string, place Place, lentAfter time.Duration) (since time.Time, blind error) {
	p := s.pods[uid]
	if p == nil {
		p = &stallPod{}
		s.pods[uid] = p
	}
	used, err := s.usage(now, place)
	if err != nil {
		said := p.blind
		*p = stallPod{blind: true}
		if said {
			err = nil
		}
		return time.Time{}, err
	}
	return s.judge(p, used, min(max(lentAfter/2, shortestWindow), longestWindow)), nil
}

// judge takes a pod's usage of now, and gives since when the pod makes no progress.
func (s *Stalls) judge(p *stallPod, now usage, window time.Duration) time.Time {
	p.samples = p.samples.add(now, window)
	took, used, full := p.samples.over(window)
	over := took.Seconds()
	switch {
	case !full:
	case used.cpu >= s.Cores*over || used.inLine >= s.InLine*over || used.moved >= s.Bytes*over:
		p.since = time.Time{}
	case p.since.IsZero():
		p.since = p.samples[0].at
	}
	return p.since
}

// Forget drops what was measured of a pod.
func (s *Stalls) Forget(uid string) { delete(s.pods, uid) }

// End forgets all pods, and returns those that made no progress.
func (s *Stalls) End() (stalled []string) {
	for uid, p := range s.pods {
		if !p.since.IsZero() {
			stalled = append(stalled, uid)
		}
	}
	clear(s.pods)
	return stalled
}
