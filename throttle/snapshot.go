package throttle

import (
	"slices"
	"time"
)

// Snapshot is what the limiter held at one moment. It is a copy.
type Snapshot struct {
	Settings Settings
	// Waiting are the Waiting tickets in the order of the queue.
	Waiting []TicketView
	// Starting are the tickets that hold a slot, in the order of their admission, then
	// those that start without one.
	Starting []TicketView
	// Held is the limit that holds the next start back; its Reason is empty when none does.
	Held Held
	// Pace is the expected time between two admissions; zero where no limit is set.
	// PaceObserved is false while it is a guess.
	Pace         time.Duration
	PaceObserved bool
	// Limit is how many may start at a time now, without those lent; zero: any number.
	Limit int
	// Lent is how many slots are lent beyond the limit.
	Lent int
	// Pulling is how many pods are between their sandbox and their first container.
	Pulling int
	// Signals are the last readings.
	Signals Signals
	// Adaptive says what the adaptive limit did last, and why; empty: it is off.
	Adaptive string
}

// Basis says what an estimate rests on.
type Basis string

// What an estimate rests on.
const (
	// BasisObserved: on starts that ended, or on a rate that is set.
	BasisObserved Basis = "observed"
	// BasisNone: on nothing yet; it is a guess.
	BasisNone Basis = "none yet"
	// BasisPolicy: a policy holds the ticket, and nobody knows for how long. Expected is
	// the time until its MaxWait is over, when a limit may be passed; zero where a bound of
	// Running holds it, which no deadline passes.
	BasisPolicy Basis = "a policy holds it"
)

// TicketView is a copy of one ticket.
type TicketView struct {
	UID      string
	Name     string
	Priority int32
	State    State
	// Reason is why the ticket is in its state. Of a Waiting ticket, the limit that holds
	// it back, or Queued.
	Reason Reason
	// Admission is why it was admitted, also after its end; empty: it was not.
	Admission Reason
	// Held says what was measured against what; of Waiting tickets only.
	Held Held
	// Ahead is the number of Waiting tickets that go before it, as Decision has it.
	Ahead int
	// Present: a process waits that starts when the ticket is admitted.
	Present bool
	// Slot: it counts among the starts at a time.
	Slot bool
	// Arrived, Admitted and Ended are when it joined, was admitted and ended; zero: it was
	// not, yet.
	Arrived, Admitted, Ended time.Time
	// Expected is the time until it is admitted, if the pace stays; of Waiting tickets
	// only. It counts every ticket ahead, present or not.
	Expected time.Duration
	// Basis is what Expected rests on; of Waiting tickets only.
	Basis Basis
	// Repeats is Request.Repeats.
	Repeats int
	// Groups are the groups of policies that it belongs to, in the order of their keys;
	// none after its end.
	Groups []GroupKey
	// StalledSince is since when a Starting ticket makes no progress; zero: it does, or
	// nobody can tell.
	StalledSince time.Time
}

// Snapshot gives a copy of all that is waiting and starting.
func (l *Limiter) Snapshot(now time.Time) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = later(now, l.latest)
	p := l.paceLocked(now)
	s := Snapshot{
		Settings: l.settings, Pace: p.every, PaceObserved: p.basis == BasisObserved,
		Limit: l.limit, Lent: max(0, l.capacityLocked()-l.limit), Signals: l.signals,
	}
	if l.adaptive != nil {
		s.Adaptive = l.adaptive.Why()
	}
	if held, ok := l.checkLocked(now); !ok {
		s.Held = held
	}
	for _, t := range l.queue.arrivals {
		if l.pulls(now, t) {
			s.Pulling++
		}
	}
	scan := l.scanLocked()
	b := line{}
	for _, t := range l.orderLocked() {
		s.Waiting = append(s.Waiting, l.viewWaitingLocked(now, t, b.next(&scan, t), p))
	}
	for _, slot := range []bool{true, false} {
		for _, t := range l.inFlight {
			if t.slot == slot {
				s.Starting = append(s.Starting, t.view())
			}
		}
	}
	return s
}

// View gives a copy of the latest ticket of the pod; false where there is none.
func (l *Limiter) View(now time.Time, uid string) (TicketView, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tickets[uid]
	if t == nil {
		return TicketView{}, false
	}
	return l.viewLocked(now, t), true
}

// Named gives a copy of the ticket of the pod with this name: of several, the one that
// joined last. False where there is none.
func (l *Limiter) Named(now time.Time, name string) (TicketView, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last *Ticket
	for _, t := range l.tickets {
		if t.name == name && (last == nil || t.seq > last.seq) {
			last = t
		}
	}
	if last == nil {
		return TicketView{}, false
	}
	return l.viewLocked(now, last), true
}

// Recent gives copies of the tickets that ended last, the latest at the end.
func (l *Limiter) Recent() []TicketView {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make([]TicketView, 0, len(l.ended))
	for _, t := range l.ended {
		views = append(views, t.view())
	}
	return views
}

// view copies what the ticket itself holds.
func (t *Ticket) view() TicketView {
	v := TicketView{
		UID: t.uid, Name: t.name, Priority: t.priority, State: t.state, Reason: t.reason, Admission: t.admission,
		Present: t.waiters > 0, Slot: t.slot && t.state == Starting,
		Arrived: t.arrived, Admitted: t.admitted, Ended: t.ended,
		Repeats: t.repeats, StalledSince: t.stalled,
	}
	if t.pod != nil {
		for i := range t.pod.in {
			v.Groups = append(v.Groups, t.pod.in[i].group.key)
		}
	}
	return v
}

func (l *Limiter) viewLocked(now time.Time, t *Ticket) TicketView {
	if t.state != Waiting {
		return t.view()
	}
	now = later(now, l.latest)
	return l.viewWaitingLocked(now, t, l.placeLocked(t), l.paceLocked(now))
}

func (l *Limiter) viewWaitingLocked(now time.Time, t *Ticket, at place, p pace) TicketView {
	v := t.view()
	v.Held, v.Ahead = l.heldLocked(now, t, at), at.ahead
	v.Reason = v.Held.Reason
	v.Expected, v.Basis = p.expected(at.ahead, v.Reason == NotPresent), p.basis
	if at.hold.in != nil {
		v.Expected, v.Basis = max(0, t.due.Sub(now)), BasisPolicy
		if at.hold.running {
			v.Expected = 0
		}
	}
	return v
}

// place is where a Waiting ticket is in the queue.
type place struct {
	ahead   int  // so many go before it
	present int  // of them have a waiter
	hold    hold // of a group
}

// line counts, in a scan, what goes before each ticket in turn: those that may start, and
// those that are held by the same group.
type line struct{ free, present int }

func (b *line) next(s *scan, t *Ticket) place {
	at := place{ahead: b.free, present: b.present, hold: s.holds(t)}
	switch h := &at.hold; {
	case h.in == nil:
		s.take(t)
		b.free++
		if t.waiters > 0 {
			b.present++
		}
	case !h.never():
		g := s.group(h.in.group)
		at.ahead += g.behind
		g.behind++
		s.stop(h)
	}
	return at
}

// placeLocked gives the place of a Waiting ticket.
func (l *Limiter) placeLocked(t *Ticket) (at place) {
	s := l.scanLocked()
	b := line{}
	for _, o := range l.orderLocked() {
		if at = b.next(&s, o); o == t {
			break
		}
	}
	return at
}

func (l *Limiter) aheadLocked(t *Ticket) int { return l.placeLocked(t).ahead }

// heldLocked says what a Waiting ticket waits for. What a group holds it for goes first:
// that may last longest.
func (l *Limiter) heldLocked(now time.Time, t *Ticket, at place) Held {
	if at.hold.in != nil {
		return at.hold.held()
	}
	if held, ok := l.checkLocked(now); !ok {
		return held
	}
	if at.present > 0 || t.waiters > 0 {
		return Held{Reason: Queued, Measured: float64(at.present)}
	}
	return Held{Reason: NotPresent}
}

// refusalLocked says what a Waiting ticket waits for, as a decision.
func (l *Limiter) refusalLocked(now time.Time, t *Ticket) Decision {
	at := l.placeLocked(t)
	held := l.heldLocked(now, t, at)
	return Decision{Reason: held.Reason, Held: held, Ahead: at.ahead}
}

// Turn is when a waiting ticket should go on if nobody decides for it any more.
type Turn struct {
	Ticket *Ticket
	// Position counts from 1 among the Of that have a waiter.
	Position, Of int
	// Pace is the expected time between two turns; the same for all.
	Pace time.Duration
}

// maxTurns bounds what Turns gives, and so what it costs.
const maxTurns = 1_000

// Turns gives the turns of the first thousand that have a waiter, in the order of the
// queue, and those that a group holds after all others.
func (l *Limiter) Turns(now time.Time) []Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	var free, held []Turn
	s, every := l.scanLocked(), l.paceLocked(later(now, l.latest)).every
	for _, t := range l.orderLocked() {
		if t.waiters == 0 {
			continue
		}
		to := &free
		if h := s.holds(t); h.in != nil {
			to = &held
		}
		*to = append(*to, Turn{Ticket: t, Pace: every})
	}
	turns := slices.Concat(free, held)
	for i := range turns {
		turns[i].Position, turns[i].Of = i+1, len(turns)
	}
	return turns[:min(len(turns), maxTurns)]
}

// mostAbsent bounds what Absent gives, and so what it costs.
const mostAbsent = 64

// Absent gives how many starts the limits allow now though no process waits for one, and
// the first 64 of the tickets without a waiter, in the order of the queue: a caller that
// can make kubelet retry does so for the first. Those that a group holds are left out. Of
// limits that are no number, as those on signals, nobody knows how many they allow beyond
// the next. Where none is allowed, free is zero, no ticket is given, and opens is when
// that may change by itself; zero: not by time alone, or nobody waits.
func (l *Limiter) Absent(now time.Time) (free int, tickets []*Ticket, opens time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = later(now, l.latest)
	if !slices.ContainsFunc(l.queue.arrivals, func(t *Ticket) bool { return t.waiters == 0 }) {
		return 0, nil, time.Time{}
	}
	if _, open := l.checkLocked(now); !open {
		opens, _ = l.opensAtLocked(now, false)
		return 0, nil, opens
	}
	free = 1
	if l.limit > 0 {
		free = l.capacityLocked() - l.slotsLocked() - l.couldStartLocked()
	}
	if free <= 0 {
		return 0, nil, time.Time{}
	}
	s := l.scanLocked()
	for _, t := range l.orderLocked() {
		if h := s.holds(t); h.in != nil || t.waiters > 0 || len(tickets) == mostAbsent {
			continue
		}
		s.take(t)
		tickets = append(tickets, t)
	}
	return free, tickets, time.Time{}
}

// GroupView is a copy of what is counted of one group.
type GroupView struct {
	Key    GroupKey
	Limits GroupLimits
	// Starting is what the pods that start use, Running what those use that were admitted
	// and have not finished: those that start, too.
	Starting, Running Usage
	// Ready is how many of those that run are ready.
	Ready int
	// Waiting is how many wait to start, those that bypass the policy too.
	Waiting int
	// Claims is how many SetClaims gave; below zero: the group is open. It means nothing
	// without GroupLimits.Claims.
	Claims int
	// Wants is how many more claims the group could use at once: so many pods would start
	// now, or when they are back within seconds, if it had them.
	Wants int
	// Throttled says which bounds are reached.
	Throttled Throttled
}

// Usage is how many pods there are, and what they request together.
type Usage struct {
	Pods     int64
	Requests Amounts
}

// Throttled says which limits of a group are reached: so much is in use that nobody who
// needs more of it is admitted.
type Throttled struct {
	Starting, Running Reached
	// Pacer and Claims: as many start as they allow.
	Pacer, Claims bool
}

// Reached says which parts of a bound are reached; Requests has every resource that is
// bounded.
type Reached struct {
	Pods     bool
	Requests map[string]bool
}

// Groups gives a copy of what is counted of each group that has pods or claims, in the
// order of their keys.
func (l *Limiter) Groups(now time.Time) []GroupView {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countLocked()
	views := make([]GroupView, 0, len(l.groups))
	for _, g := range l.groups {
		views = append(views, g.view(l.wantsLocked(later(now, l.latest), g)))
	}
	slices.SortFunc(views, func(a, b GroupView) int { return a.Key.compare(b.Key) })
	at := make(map[GroupKey]*GroupView, len(views))
	for i := range views {
		at[views[i].Key] = &views[i]
	}
	for _, p := range l.pods {
		for i := range p.in {
			v := at[p.in[i].group.key]
			if p.running {
				v.Running.add(p.in[i].requests)
			}
			if p.ticket != nil && p.ticket.state == Starting {
				v.Starting.add(p.in[i].requests)
			}
		}
	}
	return views
}

func (u *Usage) add(requests Amounts) {
	u.Pods++
	for name, amount := range requests {
		if amount = clamp(amount); amount == 0 {
			continue
		}
		if u.Requests == nil {
			u.Requests = Amounts{}
		}
		u.Requests[name] += amount
	}
}

func (g *group) view(wants int) GroupView {
	v := GroupView{Key: g.key, Limits: g.limits.given, Ready: g.ready, Waiting: g.waiting, Claims: g.claims, Wants: wants}
	v.Throttled.Starting = g.limits.reached(&g.limits.starting, &g.starting)
	v.Throttled.Running = g.limits.reached(&g.limits.running, &g.running)
	most, bounded := g.limits.given.Pacer.allows(g.ready)
	v.Throttled.Pacer = bounded && g.paced() >= int64(most)
	v.Throttled.Claims = g.limits.given.Claims && g.claims >= 0 && g.starting.pods >= int64(g.claims)
	return v
}

func (of *groupLimits) reached(b *bounds, used *usage) Reached {
	r := Reached{Pods: b.pods >= 0 && used.pods >= b.pods}
	for i, most := range b.requests {
		if most < 0 {
			continue
		}
		if r.Requests == nil {
			r.Requests = map[string]bool{}
		}
		r.Requests[of.resources[i]] = used.requests[i] >= most
	}
	return r
}

// wantsLocked gives how many more claims a group could use now: for as many as are
// expected whom nothing but its claims holds, and whom the node has room for.
func (l *Limiter) wantsLocked(now time.Time, g *group) (wants int) {
	if !g.limits.given.Claims || g.claims < 0 {
		return 0
	}
	if _, open := l.checkLocked(now); !open {
		return 0
	}
	room := len(l.queue.arrivals)
	if l.limit > 0 {
		room = l.capacityLocked() - l.slotsLocked()
	}
	s := l.scanLocked()
	s.claims = g
	for _, t := range l.orderLocked() {
		if wants == room || !t.expected(now) || !t.pod.isIn(g) {
			continue
		}
		if h := s.holds(t); h.in == nil {
			s.take(t)
			wants++
		}
	}
	return max(0, wants-max(0, g.claims-int(g.starting.pods)))
}

func (p *pod) isIn(g *group) bool {
	return p != nil && slices.ContainsFunc(p.in, func(in podInGroup) bool { return in.group == g && !in.bypass })
}
