package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Snapshot is what the limiter held at one moment. It is a copy.
type Snapshot struct {
	Settings Settings // with the defaults
	// Waiting are the Waiting tickets in the order of the queue.
	Waiting []TicketView
	// Starting are the Starting tickets, with a slot or without, in the order of their admission.
	Starting []TicketView
	// Held is the limit of the node that holds the next start back; its Reason is empty when
	// none does.
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
	// Adaptive says what the adaptive limit did last, and why; empty: it is off.
	Adaptive string
}

// TicketView is a copy of one ticket.
type TicketView struct {
	UID      string
	Name     string
	Priority int32
	State    State
	// Reason is why the ticket is in its state; of a Waiting ticket, Held.Reason.
	Reason reasons.Reason
	// Admission is why it was admitted, also after its end; empty: it was not.
	Admission reasons.Reason
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
	// Expected is the time until a Waiting ticket is admitted, if the pace stays; of one that a
	// group holds, until its MaxWait is over, and zero where that passes no limit either.
	Expected time.Duration
	// Repeats is Request.Repeats.
	Repeats int
	// StalledSince is since when a Starting ticket makes no progress; zero: it does, or
	// nobody can tell.
	StalledSince time.Time
}

// Snapshot gives a copy of all that is waiting and starting.
func (l *Limiter) Snapshot(now time.Time) Snapshot {
	now = l.lock(now)
	defer l.mu.Unlock()
	s := Snapshot{
		Settings: *l.settings, Held: l.admission.held(now), Limit: l.slots.limit, Lent: l.slots.capacity() - l.slots.limit,
		Pulling: l.admission.pulling(now), Waiting: make([]TicketView, 0, len(l.queue.arrivals)),
	}
	if s.Limit == noLimit {
		s.Limit = 0
	}
	s.Pace, s.PaceObserved = l.admission.pace(now)
	if l.slots.adaptive != nil {
		s.Adaptive = l.slots.adaptive.Why()
	}
	l.queue.places(func(t *Ticket, at place) bool {
		s.Waiting = append(s.Waiting, t.waitingView(now, at, s.Held, s.Pace))
		return true
	})
	for _, t := range l.slots.inFlight {
		s.Starting = append(s.Starting, t.view())
	}
	return s
}

// View gives a copy of the latest ticket of the pod; false where there is none.
func (l *Limiter) View(now time.Time, uid string) (TicketView, bool) {
	now = l.lock(now)
	defer l.mu.Unlock()
	t := l.groups.ticket(uid)
	switch {
	case t == nil:
		return TicketView{}, false
	case t.state != Waiting:
		return t.view(), true
	}
	every, _ := l.admission.pace(now)
	return t.waitingView(now, l.queue.place(t), l.admission.held(now), every), true
}

// Recent gives copies of the tickets that ended last, the latest at the end.
func (l *Limiter) Recent() []TicketView {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make([]TicketView, 0, len(l.book.ended))
	for _, t := range l.book.ended {
		views = append(views, t.view())
	}
	return views
}

// view copies what the ticket itself holds.
func (t *Ticket) view() TicketView {
	return TicketView{
		UID: t.uid, Name: t.name, Priority: t.priority, State: t.state, Reason: t.reason, Admission: t.admission,
		Present: t.waits(), Slot: t.slot && t.state == Starting,
		Arrived: t.arrived, Admitted: t.admitted, Ended: t.ended,
		Repeats: t.repeats, StalledSince: t.stalled,
	}
}

// waitingView adds what a ticket waits for at its place.
func (t *Ticket) waitingView(now time.Time, at place, node Held, pace time.Duration) TicketView {
	v := t.view()
	v.Held, v.Ahead = t.heldBy(at, node), at.ahead
	v.Reason = v.Held.Reason
	switch {
	case at.hold.byRunning():
	case at.hold != nil:
		v.Expected = max(0, t.due().Sub(now))
	case v.Reason == reasons.NotPresent: // it starts when it is back
		v.Expected = time.Duration(at.ahead) * pace
	default:
		v.Expected = time.Duration(at.ahead+1) * pace
	}
	return v
}

// heldBy says what a Waiting ticket waits for: what may last longest goes first.
func (t *Ticket) heldBy(at place, node Held) Held {
	switch {
	case at.hold != nil:
		return at.hold.describe()
	case !node.none():
		return node
	case at.present > 0 || t.waits():
		return Held{Reason: reasons.Queued, Measured: float64(at.present)}
	default:
		return Held{Reason: reasons.NotPresent}
	}
}

// GroupView is a copy of what is counted of one group.
type GroupView struct {
	Key    GroupKey
	Limits GroupLimits
	// Starting is what the pods that start use, Running what those use that were admitted and
	// have not finished.
	Starting, Running Usage
	// Ready is how many of those that run are ready.
	Ready int
	// Waiting is how many wait to start, those that bypass the policy too.
	Waiting int
	// Claims is how many SetClaims gave; below zero: any number.
	Claims int
	// Wants is how many more claims the group could use at once: so many pods would start
	// now, or when they are back within seconds, if it had them.
	Wants int
}

// Usage is how many pods there are, and what they request together of the resources that
// their policy bounds.
type Usage struct {
	Pods     int64
	Requests Amounts
}

// Groups gives a copy of what is counted of each group that has pods or claims, in the
// order of their keys.
func (l *Limiter) Groups(now time.Time) []GroupView {
	now = l.lock(now)
	defer l.mu.Unlock()
	l.groups.count()
	views := make([]GroupView, 0, len(l.groups.all))
	for _, g := range l.groups.all {
		views = append(views, GroupView{
			Key: g.key, Limits: g.limits, Ready: g.ready, Waiting: g.waiting, Claims: g.claims, Wants: l.admission.wants(now, g),
			Starting: g.usage(reasons.PolicyStarting, len(g.since)), Running: g.usage(reasons.PolicyRunning, g.running),
		})
	}
	return views
}

// usage gives what so many pods use of what the bounds with a reason are on.
func (g *group) usage(reason reasons.Reason, pods int) Usage {
	u := Usage{Pods: int64(pods), Requests: Amounts{}}
	for _, b := range g.bounds {
		if b.reason == reason && b.resource != "" && b.used > 0 {
			u.Requests[b.resource] = int64(min(b.used, 1<<62))
		}
	}
	return u
}

// wants gives how many more claims a group could use now.
func (d *admission) wants(now time.Time, g *group) (wants int) {
	i := slices.IndexFunc(g.bounds, func(b bound) bool { return b.reason == reasons.PolicyClaim })
	if i < 0 || g.claims < 0 || !d.held(now).none() {
		return 0
	}
	room := min(len(d.queue.arrivals), d.slots.capacity()-d.slots.taken())
	d.queue.begin()
	g.bounds[i].allows = anyNumber
	d.queue.each(func(t *Ticket) bool { return t.expected(now) }, func(t *Ticket, h *ask) bool {
		wants += one(h == nil && t.pod.isIn(g))
		return wants < room
	})
	return max(0, wants-max(0, g.claims-len(g.since)))
}

func (p *pod) isIn(g *group) bool {
	return slices.ContainsFunc(p.in, func(in member) bool { return in.group == g && !in.Bypass })
}
