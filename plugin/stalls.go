package plugin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// stalls finds the starts that make no progress: over a time, the pod used little
// CPU, did not stand in line for it most of the time, and moved little to and from
// disks. What keeps it from going on is then something else than this node, maybe a
// pod that waits for its turn.
//
// The bounds lie above what a pod uses that waits: for kubelet's probes (2.9 % of a
// core was measured with a small program executed in it every second), and for its own
// tries to reach what it waits for. A start that uses less than a tenth of a core
// leaves room for another, whatever it does. One that starves stands in line nearly
// all the time; on a busy node, one that only looks now and then whether it may go on
// does so for a good part of it.
//
// Made by newStalls; used by the pacer's run alone.
type stalls struct {
	meter
	cores  float64       // the pod has to have used less
	inLine float64       // and stood in line for a smaller share of the time
	bytes  float64       // and moved less in a second
	every  time.Duration // between two measurements

	last time.Time             // measurement
	pods map[string]*stallSign // by pod key
}

// stallSign is what the measurements of one pod say.
type stallSign struct {
	samples samples
	since   time.Time // it makes no progress since; zero: it does, or that is not known
	blind   bool      // it could not be measured, which was said
}

// Bounds of the time over which a pod is measured.
const (
	shortestStallWindow = time.Second
	longestStallWindow  = 5 * time.Second
)

func newStalls(o Options) *stalls {
	return &stalls{
		meter: newMeter(o), cores: 0.1, inLine: 0.5, bytes: 64 << 10, every: time.Second,
		pods: map[string]*stallSign{},
	}
}

// judge takes a pod's usage of now, and gives since when the pod makes no progress.
func (s *stalls) judge(sign *stallSign, now usage, window time.Duration) time.Time {
	sign.samples = sign.samples.add(now, window)
	took, used, full := sign.samples.over(window)
	over := took.Seconds()
	switch {
	case !full:
	case used.cpu >= s.cores*over || used.inLine >= s.inLine*over || used.moved >= s.bytes*over:
		sign.since = time.Time{}
	case sign.since.IsZero():
		sign.since = sign.samples[0].at
	}
	return sign.since
}

// findStalls measures every start that holds a slot, and tells the limiter which make
// no progress. It gives the time of the next measurement; zero: nobody needs one,
// because nobody waits.
func (p *pacer) findStalls(now time.Time) (next time.Time) {
	after := p.settings.Load().WithDefaults().NoProgressAfter
	if _, waiting := p.limiter.Busy(now); after < 0 || !waiting {
		p.endStalls(now)
		return time.Time{}
	}
	if next := p.stalls.last.Add(p.stalls.every); now.Before(next) {
		return next
	}
	p.stalls.last = now
	window := min(max(after/2, shortestStallWindow), longestStallWindow)
	for _, uid := range p.startingUIDs() {
		if v, ok := p.limiter.View(now, uid); ok && v.Slot {
			p.setStalled(now, v, window)
		}
	}
	return now.Add(p.stalls.every)
}

// setStalled tells the limiter since when one start makes no progress; that it fails
// says nothing of the others.
func (p *pacer) setStalled(now time.Time, v throttle.TicketView, window time.Duration) {
	defer p.caught("findStalls")
	p.limiter.SetStalled(now, v.UID, p.findStall(now, v, window))
}

// underWay gives where the containers of a start are that run. False: nothing is known
// of it, or, in the mode Shadow, it is over already and keeps its slot.
func (p *pacer) underWay(uid string) (cgroupParent string, containers []container, under bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	if r == nil || r.shadow != nil && !r.shadow.over.IsZero() {
		return "", nil, false
	}
	return r.cgroupParent, r.running(), true
}

// findStall gives since when one start makes no progress. One that cannot be
// measured is taken to make some.
func (p *pacer) findStall(now time.Time, v throttle.TicketView, window time.Duration) time.Time {
	sign := p.stalls.pods[v.UID]
	if sign == nil {
		sign = &stallSign{}
		p.stalls.pods[v.UID] = sign
	}
	parent, containers, under := p.underWay(v.UID)
	if !under {
		return time.Time{}
	}

	used, err := p.stalls.usage(now, parent, containers)
	if err != nil {
		if !sign.blind {
			p.podLog(v.UID, v.Name).WithError(err).Warn("what the pod uses cannot be read: it counts as making progress, and no slot is lent for it")
		}
		*sign = stallSign{blind: true}
		return time.Time{}
	}
	return p.stalls.judge(sign, used, window)
}

// endStalls forgets all measurements, and takes back what they said: nobody measures
// any more.
func (p *pacer) endStalls(now time.Time) {
	for uid, sign := range p.stalls.pods {
		if !sign.since.IsZero() {
			p.limiter.SetStalled(now, uid, time.Time{})
		}
	}
	clear(p.stalls.pods)
}
