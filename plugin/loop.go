package plugin

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// idleEvery bounds the time between two looks at what nothing announces, as that the
// clock was set, by which overrides of policies begin and end.
const idleEvery = 30 * time.Second

// restFor is the least time between two rounds of telling. Whoever is admitted
// knows it at once, by the ticket; what is told here can wait until the handlers
// are through with the events that the runtime sends in quick succession.
const restFor = 5 * time.Millisecond

var errStuck = errors.New("nothing is decided: the limiter does not go on")

// run advances the limiter and tells what happened until ctx ends.
func (p *pacer) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		}
		var asked chan<- struct{}
		select {
		case <-ctx.Done():
			return nil
		case <-p.limiter.Changed():
		case <-p.woken:
		case asked = <-p.pulse:
		case <-timer.C:
		}
		now := time.Now()
		next := sooner(p.limiter.Advance(now), p.keeper.Advance(now))
		p.sensors.sampler.Wake()
		if p.claimer != nil {
			p.claimer.Wake()
		}
		p.publish()
		p.findMute(now)
		next = sooner(next, p.findStalls(now))
		next = sooner(next, p.review(now))
		next = sooner(next, p.turns.post(now, forecasts(p.limiter.Snapshot(now))))
		next = sooner(next, p.tellWaiting(now))
		p.sweep(now)
		wait := idleEvery
		if !next.IsZero() {
			wait = min(wait, max(time.Millisecond, next.Sub(now)))
		}
		if asked != nil {
			close(asked)
		}
		timer.Reset(wait)
		rest.Reset(restFor)
	}
}

// sooner gives the earlier of two times; zero is none, not the earliest of all.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Alive implements gate.Backend: it blocks until run has gone round once more.
func (p *pacer) Alive(ctx context.Context) error {
	answer := make(chan struct{})
	select {
	case p.pulse <- answer:
	case <-ctx.Done():
		return errStuck
	}
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return errStuck
	}
}

// wake makes run look at all starts, and ask when to look again.
func (p *pacer) wake() {
	select {
	case p.woken <- struct{}{}:
	default: // it is about to
	}
}

// publish tells what happened to logs, metrics and events.
func (p *pacer) publish() {
	events, lost := p.limiter.Drain()
	if lost > 0 {
		p.log.WithField("lost", lost).Warn("more happened than could be told")
	}
	if lost > 0 {
		p.trackAnew()
	} else {
		for _, e := range events {
			p.track(e)
		}
	}
	for _, e := range events {
		p.tell(e)
	}
}

// tell tells one event; that it fails says nothing of the others.
func (p *pacer) tell(e throttle.Event) {
	defer p.caught("tell")
	if s, ok := p.shadowed(e.Ticket); ok {
		p.tellShadow(e, s)
		return
	}
	p.metrics.observe(e)
	p.logEvent(e)
	p.podEvents.happened(p.notices, e)
	if e.State == throttle.Starting && e.Reason == throttle.WithinLimits && p.off.Load() {
		p.metrics.unpaced.WithLabelValues(string(unpacedOff)).Inc()
	}
}

// tellWaiting tells of those that wait, and gives the time at which to do so again;
// zero: nobody waits.
func (p *pacer) tellWaiting(now time.Time) (next time.Time) {
	defer p.caught("tellWaiting")
	if !p.holds() {
		return time.Time{}
	}
	p.podEvents.inClusterOf(p.nodes())
	return p.podEvents.look(now, p.notices, p.limiter)
}

// track keeps the set of starts under way.
func (p *pacer) track(e throttle.Event) {
	uid := e.Ticket.UID()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e.State {
	case throttle.Starting:
		p.starting[uid] = &measured{}
	case throttle.Started, throttle.Gone:
		delete(p.starting, uid)
		delete(p.stalls.pods, uid)
	}
}

// trackAnew makes the set of starts under way from what the limiter holds: of some,
// no event told.
func (p *pacer) trackAnew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.starting
	p.starting = map[string]*measured{}
	for _, v := range p.limiter.Snapshot(time.Now()).Starting {
		p.starting[v.UID] = cmp.Or(before[v.UID], &measured{})
		delete(before, v.UID)
	}
	for uid := range before {
		delete(p.stalls.pods, uid)
	}
}

func (p *pacer) logEvent(e throttle.Event) {
	log := p.startLog(e.Ticket.UID(), e.Ticket.Name()).WithFields(logrus.Fields{"waiting": e.Waiting, "starting": e.Starting})
	if e.Reason != "" {
		log = log.WithField("reason", e.Reason)
	}
	pod, took := e.Ticket.Name(), e.Took.Round(100*time.Millisecond)
	switch e.State {
	case throttle.Starting:
		log.WithField("wait_ms", e.Took.Milliseconds()).Infof("start of pod %s admitted after %s", pod, took)
	case throttle.Waiting:
		if e.Reason == "" {
			log.Debugf("pod %s joined the queue", pod)
		} else {
			log.Warnf("the wait of pod %s in the gate ended without a turn: kubelet tries again, the pod keeps its place", pod)
		}
	case throttle.Started, throttle.Gone:
		log = log.WithField("start_ms", e.Took.Milliseconds())
		if e.Reason == throttle.Stuck {
			log.Warnf("start of pod %s is stuck after %s and no longer counts", pod, took)
		} else {
			log.Infof("start of pod %s ended after %s: %s", pod, took, e.Reason)
		}
	}
}

// refusedKept is how long the stop of a refused sandbox is waited for.
const refusedKept = 5 * time.Minute

// sweep forgets records of which nothing is left, and keeps the places of pods that
// have a sandbox, however long their images take.
func (p *pacer) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		for id, at := range r.refused {
			if now.Sub(at) > refusedKept {
				delete(r.refused, id)
			}
		}
		if t := p.limiter.Lookup(r.uid); t != nil && r.sandbox != "" {
			t.KeepAlive(now)
		}
		p.forgetLocked(r)
	}
}

// forgetLocked drops a record that nothing refers to any more: no sandbox, no
// container, and no ticket under way. p.mu must be held.
func (p *pacer) forgetLocked(r *record) {
	if r.sandbox != "" || len(r.refused) > 0 || len(r.containers) > 0 {
		return
	}
	if t := p.limiter.Lookup(r.uid); t != nil {
		if state, _ := t.Status(); state == throttle.Waiting || state == throttle.Starting {
			return
		}
	}
	delete(p.records, r.uid)
	if _, known := p.watched(r.uid); !known {
		p.keeper.Forget(time.Now(), r.uid)
	}
	p.gate.hooks.forget(r.uid)
}
