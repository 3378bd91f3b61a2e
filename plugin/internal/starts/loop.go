package starts

import (
	"context"
	"errors"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// idleEvery bounds the time between two looks at what nothing announces, as that the
// clock was set, by which overrides of policies begin and end.
const idleEvery = 30 * time.Second

// restFor is the least time between two rounds of telling. A pod that is admitted
// knows it at once, by the ticket; what is told here can wait until the handlers
// are through with the events that the runtime sends in quick succession.
const restFor = 5 * time.Millisecond

var errStuck = errors.New("nothing is decided: the limiter does not go on")

// loop goes round while anything happens: it is the daemon's one clock. What it keeps, only its
// own goroutine uses.
type loop struct {
	s     *Starts
	woken chan struct{}        // holds at most one: run is to look at all starts
	pulse chan chan<- struct{} // each is closed when run has gone round once more

	starting map[string]struct{} // the starts under way, by UID
	measured *usage.StartMeter   // these, and those that went on at once in the mode Shadow
	courses  map[string]*course  // of those that were seen from the beginning
	nextMute time.Time           // look for a mute pod watch
}

func newLoop(s *Starts) *loop {
	return &loop{
		s: s, woken: make(chan struct{}, 1), pulse: make(chan chan<- struct{}),
		starting: map[string]struct{}{}, measured: usage.NewStartMeter(s.Roots, s.Timing.Stalls, s.Timing.Quiet), courses: map[string]*course{},
	}
}

// run goes round until ctx ends.
func (l *loop) run(ctx context.Context) error {
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
		case <-l.s.Limiter.Changed():
		case <-l.woken:
		case asked = <-l.pulse:
		case <-timer.C:
		}
		now := time.Now()
		next, wait := l.round(now), idleEvery
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

// round goes round once, and gives the time of the next round; zero: something has to happen before.
func (l *loop) round(now time.Time) (next time.Time) {
	s := l.s
	next = sooner(s.Limiter.Advance(now), s.Policies.Advance(now))
	l.publish(now)
	l.followShadows(now)
	l.findMute(now)
	next = sooner(next, l.measure(now))
	next = sooner(next, s.ends.review(now, l.starting))
	held := s.Limiter.Snapshot(now)
	next = sooner(next, s.Round(now, held))
	next = sooner(next, s.Board.Post(now, held))
	if s.Valve.Holds() {
		next = sooner(next, s.Observer.LookAtWaiting(now, s.Limiter))
	}
	l.sweep(now)
	return next
}

// sooner returns the earlier of two times; zero is none, not the earliest of all.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// alive blocks until run has gone round once more.
func (l *loop) alive(ctx context.Context) error {
	answer := make(chan struct{})
	select {
	case l.pulse <- answer:
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
func (l *loop) wake() {
	select {
	case l.woken <- struct{}{}:
	default: // it is about to
	}
}

// publish hands what happened to the observer.
func (l *loop) publish(now time.Time) {
	events, lost := l.s.Limiter.Drain()
	if lost > 0 {
		l.s.Log.WithField("lost", lost).Warn("more happened than could be told")
		l.trackAnew()
	}
	for _, e := range events {
		reason, shadowed := l.s.Ledger.Shadowed(e.Ticket)
		if lost == 0 {
			l.track(now, e, shadowed)
		}
		if shadowed {
			l.s.Observer.HappenedInShadow(e, reason)
			continue
		}
		var container string
		l.s.Ledger.Read(func(b *pods.Book) { container = b.LatestID(e.Ticket.UID()) })
		l.s.Observer.Happened(e, container, l.s.off.Load())
	}
}

// track keeps the set of starts under way. Of one that went on at once in the mode Shadow, the events
// say what would have been, and not when it begins and is over.
func (l *loop) track(now time.Time, e throttle.Event, shadowed bool) {
	uid := e.Ticket.UID()
	if pod, known := l.s.known(uid); known && e.State == throttle.Waiting {
		l.s.expect(now, pod)
	}
	switch e.State {
	case throttle.Starting:
		if !shadowed {
			l.forget(uid)
		}
		l.starting[uid] = struct{}{}
		if !shadowed && e.Reason != reasons.Adopted {
			l.begin(now, uid)
		}
	case throttle.Started, throttle.Gone:
		l.finish(now, uid, e.Reason)
		l.forget(uid)
	}
}

// trackAnew makes the set of starts under way from what the limiter holds: of some,
// no event told.
func (l *loop) trackAnew() {
	under := map[string]struct{}{}
	for _, v := range l.s.Limiter.Snapshot(time.Now()).Starting {
		under[v.UID] = struct{}{}
	}
	for uid := range l.starting {
		if _, is := under[uid]; !is {
			l.forget(uid)
		}
	}
	l.starting = under
}

// forget drops what was measured of a start.
func (l *loop) forget(uid string) {
	delete(l.starting, uid)
	delete(l.courses, uid)
	l.measured.Forget(uid)
}

// sweep forgets pods of which nothing is left, and keeps the places of pods that
// have a sandbox, however long their images take.
func (l *loop) sweep(now time.Time) {
	for _, uid := range l.s.Ledger.sweep(now) {
		l.s.change(uid, func(time.Time) {})
	}
}

// sweep returns the pods of which nothing may be left.
func (l *Ledger) sweep(now time.Time) (empty []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book.Sweep(now)
	for _, uid := range l.book.UIDs() {
		if p, _ := l.book.Get(uid); p.Sandbox != "" {
			if t := l.limiter.Lookup(uid); t != nil {
				t.KeepAlive(now)
			}
		}
		if l.book.Empty(uid) {
			empty = append(empty, uid)
		}
	}
	for uid := range l.byRoom {
		if _, recorded := l.book.Get(uid); !recorded { // it never had a sandbox
			empty = append(empty, uid)
		}
	}
	return empty
}

// findMute compares what the runtime tells with what the pod watch does: one that is
// open and told nothing of a pod of the API server since a container of it began to run
// is mute. From then on slots end by the node's own signs, and the pods are listed anew.
func (l *loop) findMute(now time.Time) {
	defer l.s.Observer.Caught("findMute")
	if l.s.Pods == nil || now.Before(l.nextMute) {
		return
	}
	l.nextMute = now.Add(l.s.Timing.MuteEvery)
	var long []pods.LongRunning
	l.s.Ledger.Read(func(b *pods.Book) { long = b.RunFor(now, l.s.Timing.MuteAfter) })
	for _, c := range long {
		if l.s.Pods.Heard(c.UID).Before(c.Since) {
			l.s.Pods.ListAnew(now, "pod "+c.Title()+" runs a container that the API server has not told of")
			return
		}
	}
}
