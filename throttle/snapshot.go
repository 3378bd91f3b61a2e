package throttle

import (
	"cmp"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Snapshot is a copy of the state of the limiter at one moment.
type Snapshot struct {
	Settings Settings // with defaults
	// Waiting are the Waiting tickets in the order of the queue.
	Waiting []TicketView
	// Starting are the Starting tickets, with a slot or without, in the order of their admission.
	Starting []TicketView
	// Held is the limit of the node that holds the next start. The zero value: none does.
	Held Held
	// Interval is the expected time between two admissions; zero if no limit is set. IntervalObserved
	// is false while Interval is a guess.
	Interval         time.Duration
	IntervalObserved bool
	// Limit is how many pods may start at a time now, without lent slots; zero if any number may.
	Limit int
	// Lent is how many slots are lent beyond the limit.
	Lent int
	// Pulling is how many pods have a pull permit: they may pull their images.
	Pulling int
	// Adaptive is what the adaptive limit did last, and why; empty if it is off.
	Adaptive string
}

// TicketView is a copy of one ticket.
type TicketView struct {
	UID      string
	Name     string
	Priority int32
	State    State
	// Reason is why the ticket is in its state; for a Waiting ticket, Held.Reason.
	Reason reasons.Reason
	// Admission is why it was admitted, also after its end; empty if it was not.
	Admission reasons.Reason
	// Held is the limit that holds a Waiting ticket.
	Held Held
	// Ahead is the number of Waiting tickets that go before it, as in Decision.
	Ahead int
	// Present reports whether a process waits for the ticket. It starts when the ticket is admitted.
	Present bool
	// Overdue reports whether the ticket waits and its MaxWait is over.
	Overdue bool
	// Slot reports whether the ticket holds a slot, and Lent whether that slot was lent and more slots are taken than
	// there are without loans.
	Slot, Lent bool
	// Arrived is when the pod began to wait, which may be before its ticket joined. Admitted and Ended are when the
	// ticket was admitted and ended; each is zero until then.
	Arrived, Admitted, Ended time.Time
	// Since is when its counted wait began: Arrived, or later by the time in which kubelet prepared the pod.
	Since time.Time
	// WaitLeft is the time until a Waiting ticket is expected to be admitted. If a group holds
	// the ticket, it is the time until its MaxWait is over, or zero if MaxWait does not help.
	WaitLeft time.Duration
	// Repeats is Request.Repeats.
	Repeats int
	// StalledSince is when a Starting ticket stopped making progress; zero if it makes progress or that is not known.
	StalledSince time.Time
}

// HeldBack returns the view of a pod that the caller keeps from its place by the order of the queue, as in the waiting room:
// kubelet does not have to retry it, so the pods ahead hold it if no limit does.
func (v TicketView) HeldBack() TicketView {
	if v.Held.Reason == reasons.NotPresent {
		v.Held = Held{Reason: reasons.Queued, Measured: float64(v.Ahead)}
		v.Reason = v.Held.Reason
	}
	return v
}

// Snapshot returns a copy of the state of the limiter.
func (l *Limiter) Snapshot(now time.Time) Snapshot {
	now = l.at(now)
	s := Snapshot{
		Settings: *l.settings, Held: l.admission.held(now), Limit: l.slots.limit, Lent: l.slots.capacity() - l.slots.limit,
		Pulling: l.admission.pulling(now), Waiting: make([]TicketView, 0, len(l.queue.arrivals)),
	}
	if s.Limit == noLimit {
		s.Limit = 0
	}
	s.Interval, s.IntervalObserved = l.admission.interval(now)
	if l.slots.adaptive != nil {
		s.Adaptive = l.slots.adaptive.Why()
	}
	turn := l.admission.turns(now)
	line := line{scan: l.queue.begin(&l.queue.lined)}
	for _, t := range l.queue.inOrder() {
		s.Waiting = append(s.Waiting, t.waitingView(now, line.position(t), s.Held, turn))
		line.next(t)
	}
	for _, t := range l.slots.inFlight {
		s.Starting = append(s.Starting, t.view())
	}
	return s
}

// View returns a copy of the latest ticket of the pod; ok is false if there is none.
func (l *Limiter) View(now time.Time, uid string) (v TicketView, ok bool) {
	now = l.at(now)
	switch t := l.groups.ticket(uid); {
	case t == nil:
		return TicketView{}, false
	case t.state != Waiting:
		return t.view(), true
	default:
		return t.waitingView(now, l.queue.position(t), l.admission.held(now), l.admission.turns(now)), true
	}
}

// Recent returns copies of the last 256 tickets that have ended, the latest at the end.
func (l *Limiter) Recent() []TicketView {
	views := make([]TicketView, 0, len(l.tickets.ended))
	for _, t := range l.tickets.ended {
		views = append(views, t.view())
	}
	return views
}

// view returns what the ticket itself holds.
func (t *Ticket) view() TicketView {
	return TicketView{
		UID: t.uid, Name: t.name, Priority: t.priority, State: t.state, Reason: t.reason, Admission: t.admission,
		Present: t.waits(), Slot: t.slot && t.state == Starting, Lent: t.Lent(),
		Arrived: t.arrived, Admitted: t.admitted, Ended: t.ended, Since: t.preparation.delays(t.arrived),
		Repeats: t.repeats, StalledSince: t.stalledSince,
	}
}

// waitingView adds what a ticket waits for at its position.
func (t *Ticket) waitingView(now time.Time, at position, node Held, turn func(t *Ticket, ahead int, held bool) time.Duration) TicketView {
	v := t.view()
	v.Held, v.Ahead, v.Overdue = t.heldBy(at, node), at.ahead, !now.Before(t.due())
	v.Reason, v.Since = v.Held.Reason, t.Since(now)
	if v.Reason == reasons.Preparing {
		v.Overdue = false
	}
	held := v.Held
	if !at.held.none() { // also while it is prepared
		held = at.held
	}
	v.WaitLeft = t.waitLeft(now, held, node, at.ahead, turn)
	return v
}

// waitLeft returns TicketView.WaitLeft of a Waiting ticket, by what holds it, what the node holds it for, and how many
// tickets are ahead.
func (t *Ticket) waitLeft(now time.Time, held, node Held, ahead int, turn func(t *Ticket, ahead int, held bool) time.Duration) time.Duration {
	switch {
	case held.Reason == reasons.PolicyRunning || held.Reason == reasons.Unadmittable:
		return 0
	case held.Policy != (GroupKey{}):
		return max(0, t.due().Sub(now))
	}
	left := turn(t, ahead, held.Reason != reasons.NotPresent && held.Reason != reasons.Preparing) // else it starts when it comes
	if node.Reason == reasons.StartAfter {
		left += node.Until.Sub(now)
	}
	return left
}

// heldBy returns what a Waiting ticket waits for. If several limits hold it, the one that may last
// longest counts.
func (t *Ticket) heldBy(at position, node Held) Held {
	switch {
	case !t.preparation.since.IsZero():
		return Held{Reason: reasons.Preparing}
	case !at.held.none():
		return at.held
	case !node.none():
		return node
	case at.present > 0:
		return Held{Reason: reasons.Queued, Measured: float64(at.present)}
	case t.waits():
		return Held{Reason: reasons.Queued, Measured: float64(at.ahead)}
	default:
		return Held{Reason: reasons.NotPresent}
	}
}

// GroupView is a copy of the counts of a group.
type GroupView struct {
	Key    GroupKey
	Limits GroupLimits
	// Starting counts the pods that start, Running the pods that were admitted and have not
	// finished.
	Starting, Running Usage
	// Ready is how many of the running pods are ready.
	Ready int
	// Waiting is how many pods wait to start, including those that bypass the policy.
	Waiting int
	// Claims is the number that SetClaims set; it is below zero if any number of pods may start.
	Claims int
	// Wants is how many more claims the group could use: if it had them, that many more pods would start now or within
	// seconds. Claims that these pods also need of groups with more slots are taken for granted.
	Wants int
}

// Usage is a number of pods, and what they request together of the resources that their policy limits.
type Usage struct {
	Pods     int64
	Requests Amounts
}

// Groups returns the counts of each group that has pods or claims, in the order of the keys.
func (l *Limiter) Groups(now time.Time) []GroupView {
	now = l.at(now)
	l.groups.count()
	views := make([]GroupView, 0, len(l.groups.all))
	for _, g := range l.groups.all {
		views = append(views, GroupView{
			Key: g.key, Limits: g.limits, Ready: g.ready, Waiting: g.waiting, Claims: g.claims, Wants: l.admission.wants(now, g),
			Starting: g.usage(reasons.PolicyStarting, len(g.starting)), Running: g.usage(reasons.PolicyRunning, g.running),
		})
	}
	return views
}

// usage returns a number of pods, and what is used of the resources that have a bound with a reason.
func (g *group) usage(reason reasons.Reason, pods int) Usage {
	u := Usage{Pods: int64(pods), Requests: Amounts{}}
	for _, b := range g.bounds {
		if b.reason == reason && b.resource != "" && b.used > 0 {
			u.Requests[b.resource] = int64(min(b.used, 1<<62))
		}
	}
	return u
}

// wants returns how many more claims a group could use now. A pod in several groups with claims needs one of each. It
// wants the claim of the group with the fewest slots first, on every node. Then no two nodes wait for a claim of each
// other, and few claims are kept for pods that wait for another.
func (d *admission) wants(now time.Time, g *group) (wants int) {
	spare, left := max(0, g.claims-len(g.starting)), g.waiting
	if g.limits.Claims == nil || g.claims < 0 || left <= spare || !d.held(now).none() {
		return 0
	}
	free := min(len(d.queue.arrivals), d.slots.capacity()-d.slots.taken())
	s := d.queue.begin(&d.queue.scanned)
	s.of(g.claimed()).allows = anyNumber
	for _, o := range d.queue.groups.all {
		c := o.limits.Claims
		if c != nil && cmp.Or(cmp.Compare(c.Slots, g.limits.Claims.Slots), o.key.compare(g.key)) > 0 {
			its := s.of(o.claimed())
			its.allows = max(its.allows, float64(c.Slots)) // it can get as many later
		}
	}
	include := func(t *Ticket) bool {
		left -= oneIf(slices.ContainsFunc(t.pod.in, func(in podInGroup) bool { return in.group == g }))
		return t.awaited(now)
	}
	d.queue.each(s, include, func(t *Ticket, heldBy *ask) bool {
		wants += oneIf(heldBy == nil && t.pod.limitedBy(g))
		return wants < free && left > 0 // those behind are of other groups
	})
	return max(0, wants-spare)
}

// limitedBy reports whether the bounds of a group can hold the pod.
func (p *pod) limitedBy(g *group) bool {
	return slices.ContainsFunc(p.in, func(in podInGroup) bool { return in.group == g && !in.Bypass })
}
