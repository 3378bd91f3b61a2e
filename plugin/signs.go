package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// signs are the node's own signs that a pod has started, where nobody can say
// whether it is ready: every container has run for a time, and the pod used
// little CPU lately and stood in line for little: on a node that is short of CPU, a
// pod that starves uses little, too. Made by newSigns; safe for concurrent use.
type signs struct {
	meter
	run    time.Duration // how long every container has to have run
	cores  float64       // the pod has to have wanted less
	window time.Duration // over this time
	every  time.Duration // between two measurements

	mu      sync.Mutex
	samples map[string]samples // by pod key
	blind   map[string]bool    // pods whose CPU use could not be read, said once
}

func newSigns(o Options) *signs {
	return &signs{
		meter: newMeter(o),
		run:   10 * time.Second, cores: 0.2, window: 2 * time.Second, every: 500 * time.Millisecond,
		samples: map[string]samples{}, blind: map[string]bool{},
	}
}

// quiet tells whether the pod wanted little CPU over the window, given its sample
// of now. It is false until the window is full.
func (s *signs) quiet(uid string, now usage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples[uid] = s.samples[uid].add(now, s.window)
	took, used, full := s.samples[uid].over(s.window)
	return full && used.cpu+used.inLine < s.cores*took.Seconds()
}

func (s *signs) forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.samples, uid)
	delete(s.blind, uid)
}

// blindOnce tells whether it is new that the pod cannot be measured.
func (s *signs) blindOnce(uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.blind[uid]
	s.blind[uid] = true
	return !was
}

// due gives when the pod is to be measured next; the zero time: now.
func (s *signs) due(uid string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if taken := s.samples[uid]; len(taken) > 0 {
		return taken[len(taken)-1].at.Add(s.every)
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
	if due := p.signs.due(t.UID()); now.Before(due) {
		return due
	}
	used, err := p.signs.cpu(parent, containers)
	if err != nil && p.signs.blindOnce(t.UID()) {
		p.podLog(t.UID(), t.Name()).WithError(err).Warn("CPU use of the pod cannot be read: its slot ends after its containers have run for ", p.signs.run)
	}
	quiet := err != nil || p.signs.quiet(t.UID(), usage{at: now, cpu: used, inLine: p.signs.inLine(parent, containers)})
	if quiet && now.Sub(run.youngest) >= p.signs.run {
		t.End(now, throttle.Inferred)
	}
	return again
}
