package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// arrivalGrace is how long a pod with a reservation is expected. One that takes longer
	// pulls images, and must not keep out those that could start meanwhile.
	arrivalGrace = 10 * time.Second
	// returnsWithin is how long a pod that was refused is expected: kubelet is back within
	// 15 seconds, and then has something to do.
	returnsWithin = 20 * time.Second
)

// reservations say who may wait near their turn, and who may pull images meanwhile.
type reservations struct {
	settings  *Settings
	scan      *scan
	estimates *estimates
}

// decide decides whether t may wait near its turn: there is room for all that come
// before it, of whom some may be away for a moment, and for it; and no more than twice the
// room are near. One whose MaxWait is over gets its reservation in any case, if no other
// such is near. One that a bound of Running holds does not: nobody knows for how long.
func (r *reservations) decide(now time.Time, t *Ticket, waitable time.Duration) Decision {
	held, before := r.roomHolds(now, t, waitable)
	hours := held.Reason == reasons.PolicyRunning || held.Reason == reasons.Unadmittable
	if pulling := r.pullingHolds(now, t); !hours && !pulling.none() {
		held = pulling
	}
	if held.none() || (!hours && r.mayPassRoom(now, t)) {
		return Decision{Admitted: true, Ahead: before}
	}
	return Decision{Reason: held.Reason, Held: held, Ahead: r.scan.place(t).ahead}
}

// roomHolds is a decision on what is foreseen: each limit allows what it is expected to
// allow while a process can wait. It gives what has no room for the ticket, if anything, and
// how many come before it.
func (r *reservations) roomHolds(now time.Time, t *Ticket, waitable time.Duration) (held Held, before int) {
	f := r.estimates.forecast(now, waitable)
	room, near, behind := r.estimates.room(now, &f), 0, false
	r.scan.begin()
	for _, g := range r.scan.groups.all {
		f.foresee(g)
	}
	t.pod.foreseeOne()
	r.scan.each(func(o *Ticket) bool { return o == t || (o.expected(now) && !behind) || o.near(now) }, func(o *Ticket, h *ask) bool {
		switch {
		case o == t && h != nil:
			held = h.says()
			return false
		case o == t:
			behind = true
		case h == nil:
			before += one(!behind)
			near += one(o.near(now))
		}
		return true
	})
	if held.none() && (before >= room || near >= 2*room) {
		held = Held{Reason: reasons.GateRoom, Measured: float64(max(before, near)), Threshold: float64(room)}
	}
	return held, before
}

// mayPassRoom tells whether t gets its reservation though there is no room or no
// place to pull: it has waited for too long, and no other such is near its turn.
func (r *reservations) mayPassRoom(now time.Time, t *Ticket) bool {
	if now.Before(t.due) {
		return false
	}
	return !slices.ContainsFunc(r.scan.queue.arrivals, func(o *Ticket) bool { return o != t && o.near(now) && !now.Before(o.due) })
}

// pulls tells whether the ticket has a place to pull. A place is given back after as long
// as a start may take: an image that cannot be pulled must not keep out all others.
func (r *reservations) pulls(now time.Time, t *Ticket) bool {
	return !t.pullsSince.IsZero() && now.Sub(t.pullsSince) < r.settings.StartTimeout
}

// pullingHolds tells what keeps the ticket from a place among those that pull images.
// One that has been at a container needs none. A place is kept for a pod of a higher
// priority that will be back at its sandbox within seconds, unless a group holds it.
func (r *reservations) pullingHolds(now time.Time, t *Ticket) Held {
	most := r.settings.MaxPulling
	if most <= 0 || t.pulled || r.pulls(now, t) {
		return Held{}
	}
	urgent := r.scan.couldStart(func(o *Ticket) bool {
		return o.priority > t.priority && !o.reserved && !o.pulled && o.expected(now)
	})
	switch free := most - r.pulling(now); {
	case free <= 0:
		return Held{Reason: reasons.Pulling, Measured: float64(most - free), Threshold: float64(most)}
	case urgent >= free:
		return Held{Reason: reasons.Queued, Measured: float64(urgent)}
	default:
		return Held{}
	}
}

// pulling gives how many have a place to pull.
func (r *reservations) pulling(now time.Time) (n int) {
	for _, t := range r.scan.queue.arrivals {
		n += one(r.pulls(now, t))
	}
	return n
}
