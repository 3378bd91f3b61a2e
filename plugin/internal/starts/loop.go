package starts

import (
	"context"
	"errors"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// idleEvery is the longest time between two rounds. Temporary overrides of policies begin and end by the wall clock,
// and no event reports that this clock was set.
const idleEvery = 30 * time.Second

// restFor is the least time between two rounds. A waiting process learns of its admission at once, by the ticket.
// The rest can wait until the handlers are done with a burst of events from the runtime.
const restFor = 5 * time.Millisecond

var errStuck = errors.New("nothing is decided: the limiter is stuck")

// Run is the loop: it does all that starts need a clock for, in a round whenever something happens. It returns nil when ctx
// ends. It may be called again after a panic, but only one call may run at a time.
func (s *Starts) Run(ctx context.Context) error {
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
		case <-s.woken:
		case asked = <-s.pulse:
		case <-timer.C:
		}
		now := time.Now()
		next, wait := s.round(now), idleEvery
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

// round does one round, and returns the time of the next, or zero if it waits until something happens.
func (s *Starts) round(now time.Time) (next time.Time) {
	next = sooner(s.lookAfter(now), sooner(s.advance(now), s.advancePolicies(now)))
	s.publish(now)
	next = sooner(next, s.follow(now))
	if s.news.Swap(false) {
		s.updateProfiles(now)
	}
	snapshot := s.Snapshot(now)
	inRoom, again := s.o.Round(now, snapshot.Waiting)
	for i := range snapshot.Waiting {
		v := &snapshot.Waiting[i]
		if inRoom[v.UID] {
			*v = v.HeldBack()
			v.Present = true // so that it gets a forecast
		}
	}
	if s.Enforces() {
		next = sooner(next, s.o.Observer.LookAtWaiting(now, snapshot))
	}
	return sooner(sooner(next, again), s.settle(now, snapshot, inRoom))
}

// sooner returns the earlier of two times. A zero time means none, and does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Alive blocks until Run completes another round. It returns an error if ctx ends before.
func (s *Starts) Alive(ctx context.Context) error {
	answer := make(chan struct{})
	select {
	case s.pulse <- answer:
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

// publish passes the events of the limiter to the observer.
func (s *Starts) publish(now time.Time) {
	for _, e := range s.drain() {
		s.track(now, e)
		pod := observe.Pod{UID: e.Ticket.UID(), Name: e.Ticket.Name()}
		e.Ticket = nil // only this package may use it
		if e.shadowed {
			s.o.Observer.Report(observe.ShadowEvent{Pod: pod, Event: e.Event, HeldBy: e.heldBy})
			continue
		}
		s.o.Observer.Report(observe.StartEvent{Pod: pod, Event: e.Event, Container: e.container, Disabled: s.mode() == v1alpha1.ModeDisabled})
	}
}

// startEvent is an event of the limiter, and what is known of its pod beside.
type startEvent struct {
	throttle.Event
	pod       *Pod           // nil if it is forgotten: nothing is learned of its start
	shadowed  bool           // the start continued at once in the mode Shadow
	heldBy    reasons.Reason // the limit that would have held it then
	container string         // the ID of the pod's newest container, or ""
}

// drain returns the events since the last call.
func (s *Starts) drain() (all []startEvent) {
	s.lock()
	defer s.unlock()
	for _, of := range s.ledger.limiter.Drain() {
		s.ledger.resort.note(of)
		e := startEvent{Event: of}
		if p := s.ledger.pods[of.Ticket.UID()]; p != nil {
			e.pod, e.container = p, p.latest().id
			if p.shadow != nil && p.shadow.ticket == of.Ticket {
				e.shadowed, e.heldBy = true, p.shadow.reason
			}
		}
		all = append(all, e)
	}
	return all
}

// advance ends the starts and waits whose time is over, and returns when to call it next, or zero if something has to
// happen first.
func (s *Starts) advance(now time.Time) (next time.Time) {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Advance(now)
}

// settle does what a round does for all pods. It keeps the tickets of pods with a sandbox, however long their images take
// to pull, and of those that wait in the waiting room, and forgets pods that have nothing left. The start of a pod ends
// that the API server does not have and kubelet does not ask for: it came and was deleted while the pod watch was away. It
// starts pods with a process that waits as a last resort; one without asks again. It forecasts the turns, and returns when
// to do that again.
func (s *Starts) settle(now time.Time, snapshot throttle.Snapshot, inRoom map[string]bool) (again time.Time) {
	complete := s.o.Pods != nil && s.o.Pods.Healthy()
	s.lock()
	defer s.unlock()
	l := &s.ledger
	for uid, p := range l.pods {
		if p.ticket != nil && (p.sandbox != "" || inRoom[uid]) {
			p.ticket.KeepAlive(now)
		}
		if complete && !p.known && p.lives() && !p.ticket.AskedFor(now) {
			p.end(now, reasons.Deleted)
		}
		if p.reported || !p.known {
			l.forget(now, p)
		}
	}
	for _, v := range snapshot.Waiting {
		if p := l.pods[v.UID]; p != nil && v.Present && s.Enforces() {
			l.startAsLastResort(now, p, v.Reason)
		}
	}
	return l.board.update(now, snapshot)
}

// reportsMiss is how long kubelet's reports may be missing before pods are judged without them. An API server that
// restarts ends all watches, and they are back within one or two seconds.
const reportsMiss = 5 * time.Second

// reported reports whether kubelet's reports come in by the pod watch, or did until a moment ago.
func (s *Starts) reported(now time.Time) bool {
	return s.o.Pods != nil && s.o.Pods.HealthySince(now.Add(-reportsMiss))
}

// judgeOne judges a start that holds a slot, by kubelet's reports or, if they are missing, by what was measured. A panic
// does not affect the others.
func (s *Starts) judgeOne(now time.Time, one underWay, reported bool) (again time.Time) {
	defer s.o.Observer.CaughtPod("review", one.uid, one.name)
	pod := s.Known(one.uid)
	if len(pod.Containers) > 0 && reported {
		return s.review(now, one.uid, one.name)
	}
	c := one.pod.course
	s.judgeBySigns(now, one.ticket, pod, c != nil && s.meter.Quiet(&c.Start))
	return time.Time{}
}

// track begins and ends the measurement of starts. In the mode Shadow, the events of a start that continued at once are
// about what would have happened, not about when it really begins and ends.
func (s *Starts) track(now time.Time, e startEvent) {
	uid := e.Ticket.UID()
	if pod := s.Known(uid); pod.IsKnown() && e.State == throttle.Waiting {
		s.setProfiles(now, map[string]throttle.Profile{uid: s.profile(pod, e.Ticket.Repeats() > 0)})
	}
	switch {
	case e.pod == nil:
	case e.State == throttle.Starting && !e.shadowed:
		e.pod.course = nil
		if e.Reason != reasons.Adopted {
			s.begin(now, e.pod, e.Ticket, time.Time{})
		}
	case e.State == throttle.Started, e.State == throttle.Gone:
		s.finish(now, e.pod, e.Ticket, e.Reason)
	}
}
