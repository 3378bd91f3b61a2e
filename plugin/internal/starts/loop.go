package starts

import (
	"context"
	"errors"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
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
	stalls   *usage.Stalls
}

func newLoop(s *Starts) *loop {
	return &loop{
		s: s, woken: make(chan struct{}, 1), pulse: make(chan chan<- struct{}),
		starting: map[string]struct{}{}, stalls: usage.NewStalls(s.Roots, s.Timing.Stalls),
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
	if s.Round != nil {
		s.Round()
	}
	l.publish()
	next = sooner(next, l.findStalls(now))
	next = sooner(next, s.ends.review(now, l.startingUIDs()))
	held := s.Limiter.Snapshot(now)
	if s.InRoom != nil {
		next = sooner(next, s.InRoom(now, held))
	}
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
func (l *loop) publish() {
	events, lost := l.s.Limiter.Drain()
	if lost > 0 {
		l.s.Log.WithField("lost", lost).Warn("more happened than could be told")
		l.trackAnew()
	}
	for _, e := range events {
		if lost == 0 {
			l.track(e)
		}
		if reason, ok := l.s.Ledger.Shadowed(e.Ticket); ok {
			l.s.Observer.HappenedInShadow(e, reason)
			continue
		}
		var container string
		l.s.Ledger.Read(func(b *pods.Book) { container = b.LatestID(e.Ticket.UID()) })
		l.s.Observer.Happened(e, container, l.s.off.Load())
	}
}

// track keeps the set of starts under way.
func (l *loop) track(e throttle.Event) {
	uid := e.Ticket.UID()
	switch e.State {
	case throttle.Starting:
		l.forget(uid)
		l.starting[uid] = struct{}{}
	case throttle.Started, throttle.Gone:
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
	l.stalls.Forget(uid)
	l.s.ends.quiet.Forget(uid)
}

func (l *loop) startingUIDs() []string {
	uids := make([]string, 0, len(l.starting))
	for uid := range l.starting {
		uids = append(uids, uid)
	}
	return uids
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

// findStalls measures every start that holds a slot, and tells the limiter which make
// no progress. It returns the time of the next measurement; zero: none is needed,
// because no pod waits.
func (l *loop) findStalls(now time.Time) (next time.Time) {
	after := l.s.settings.Load().WithDefaults().NoProgressAfter
	if _, waiting := l.s.Limiter.Busy(now); after < 0 || !waiting {
		for _, uid := range l.stalls.End() {
			l.s.Limiter.SetStalled(now, uid, time.Time{}) // it is not measured any more
		}
		return time.Time{}
	}
	due, next := l.stalls.Begin(now)
	if !due {
		return next
	}
	for uid := range l.starting {
		if v, ok := l.s.Limiter.View(now, uid); ok && v.Slot {
			l.findStall(now, v, after)
		}
	}
	return next
}

// findStall tells the limiter since when one start makes no progress; that it fails
// says nothing of the others.
func (l *loop) findStall(now time.Time, v throttle.TicketView, after time.Duration) {
	defer l.s.Observer.Caught("findStalls")
	since := time.Time{}
	if place, under := l.s.Ledger.underWay(v.UID); under {
		var blind error
		if since, blind = l.stalls.Measure(now, v.UID, place, after); blind != nil {
			l.s.Observer.PodLog(v.UID, v.Name).WithError(blind).Warnf("what pod %s uses cannot be read: it counts as making progress, and no slot is lent for it", v.Name)
		}
	}
	l.s.Limiter.SetStalled(now, v.UID, since)
}

// underWay returns where the containers of a start run. False: nothing is known
// of it, or, in the mode Shadow, it is over already and keeps its slot.
func (l *Ledger) underWay(uid string) (place usage.Place, under bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, recorded := l.book.Get(uid); !recorded {
		return usage.Place{}, false
	}
	if sh := l.shadows[uid]; sh != nil && !sh.over.IsZero() {
		return usage.Place{}, false
	}
	return l.book.Place(uid), true
}
