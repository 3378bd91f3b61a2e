package plugin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// signs are the node's own signs that a pod has started, where nobody can say
// whether it is ready: every container has run for a time, and the pod used
// little CPU lately and stood in line for little: on a node that is short of CPU, a
// pod that starves uses little, too. Made by newSigns; they do not change.
type signs struct {
	meter
	run    time.Duration // how long every container has to have run
	cores  float64       // the pod has to have wanted less
	window time.Duration // over this time
	every  time.Duration // between two measurements
}

// measured is what was measured of one start that is under way.
type measured struct {
	samples samples
	blind   bool // its CPU use could not be read, which was said
}

func newSigns(o Options) *signs {
	return &signs{
		meter: newMeter(o),
		run:   10 * time.Second, cores: 0.2, window: 2 * time.Second, every: 500 * time.Millisecond,
	}
}

// quiet tells whether the pod wanted little CPU over the window, given its sample
// of now. It is false until the window is full.
func (s *signs) quiet(m *measured, now usage) bool {
	m.samples = m.samples.add(now, s.window)
	took, used, full := m.samples.over(s.window)
	return full && used.cpu+used.inLine < s.cores*took.Seconds()
}

// quiet is that of a start under way; its samples are forgotten with its end, and of one
// that is not under way there are none.
func (p *pacer) quiet(uid string, now usage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.starting[uid]
	return m != nil && p.signs.quiet(m, now)
}

// blindOnce tells whether it is new that a start under way cannot be measured.
func (p *pacer) blindOnce(uid string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.starting[uid]
	if m == nil || m.blind {
		return false
	}
	m.blind = true
	return true
}

// measureAt gives when a start is to be measured next; the zero time: now.
func (p *pacer) measureAt(uid string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.starting[uid]; m != nil && len(m.samples) > 0 {
		return m.samples[len(m.samples)-1].at.Add(p.signs.every)
	}
	return time.Time{}
}

// signsOf gives what the runtime told of a start, whether all that ran of it has
// exited for good, and which containers run, where. Of a pod that is not known
// nothing has begun.
func (p *pacer) signsOf(now time.Time, v throttle.TicketView) (run progress, ended bool, cgroupParent string, containers []container) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[v.UID]
	if r == nil {
		return progress{}, false, "", nil
	}
	run = r.progress(v.Arrived, podwatch.Pod{})
	ended = len(run.ids) == 0 && r.exitedSince(v.Admitted) && !r.exitedSince(now.Add(-p.signs.window))
	return run, ended, r.cgroupParent, r.running()
}

// judgeBySigns ends the slot of a pod that has started by the node's own signs, and
// gives the time at which to judge again. It measures no more often than that, however
// often it is called: in a herd much else happens.
func (p *pacer) judgeBySigns(now time.Time, t *throttle.Ticket) (again time.Time) {
	again = now.Add(p.signs.every)
	v, _ := p.limiter.View(now, t.UID())
	run, ended, parent, containers := p.signsOf(now, v)
	if ended {
		t.End(now, throttle.Completed)
		return again
	}
	if !run.begun {
		return again
	}
	if due := p.measureAt(t.UID()); now.Before(due) {
		return due
	}
	used, err := p.signs.cpu(parent, containers)
	if err != nil && p.blindOnce(t.UID()) {
		p.podLog(t.UID(), t.Name()).WithError(err).Warn("CPU use of the pod cannot be read: its slot ends after its containers have run for ", p.signs.run)
	}
	quiet := err != nil || p.quiet(t.UID(), usage{at: now, cpu: used, inLine: p.signs.inLine(parent, containers)})
	if quiet && now.Sub(run.youngest) >= p.signs.run {
		t.End(now, throttle.Inferred)
	}
	return again
}
