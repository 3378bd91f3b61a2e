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

// reserve decides whether t may wait near its turn. One whose MaxWait is over may in any case,
// if no other such is near. One that a bound of Running holds may not: nobody knows for how
// long.
func (d *admission) reserve(now time.Time, t *Ticket, waitable time.Duration) Decision {
	held := d.roomHolds(now, t, waitable)
	hours := held.Reason == reasons.PolicyRunning || held.Reason == reasons.Unadmittable
	if pulling := d.pullingHolds(now, t); !hours && !pulling.none() {
		held = pulling
	}
	overdue := func(o *Ticket) bool { return o != t && o.near(now) && !now.Before(o.due()) }
	passes := !hours && !now.Before(t.due()) && !slices.ContainsFunc(d.queue.arrivals, overdue)
	if held.none() || passes {
		return Decision{Admitted: true}
	}
	return Decision{Reason: held.Reason, Held: held, Ahead: d.queue.place(t).ahead}
}

// roomHolds gives what has no room for the ticket, if anything, where each limit allows what
// it is expected to allow while a process can wait.
func (d *admission) roomHolds(now time.Time, t *Ticket, waitable time.Duration) (held Held) {
	f := d.forecast(now, waitable)
	room, before, near, behind := d.room(now, &f), 0, 0, false
	d.queue.begin()
	for _, g := range d.queue.groups.all {
		f.foresee(g)
	}
	t.pod.foreseeOne()
	d.queue.each(func(o *Ticket) bool { return o == t || (o.expected(now) && !behind) || o.near(now) }, func(o *Ticket, h *ask) bool {
		switch {
		case o == t && h != nil:
			held = h.describe()
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
	return held
}

// pulls tells whether the ticket has a place to pull. It has lost it after as long as a start
// may take: an image that cannot be pulled must not keep out all others.
func (d *admission) pulls(now time.Time, t *Ticket) bool {
	return !t.pullsSince.IsZero() && now.Sub(t.pullsSince) < d.settings.StartTimeout
}

// pullingHolds tells what keeps the ticket from a place among those that pull images. A place
// is kept for a pod of a higher priority that is expected, unless a group holds it.
func (d *admission) pullingHolds(now time.Time, t *Ticket) Held {
	most := d.settings.MaxPulling
	if most <= 0 || t.pulled || d.pulls(now, t) {
		return Held{}
	}
	urgent := d.queue.couldStart(func(o *Ticket) bool {
		return o.priority > t.priority && !o.reserved && !o.pulled && o.expected(now)
	})
	switch free := most - d.pulling(now); {
	case free <= 0:
		return Held{Reason: reasons.Pulling, Measured: float64(most - free), Threshold: float64(most)}
	case urgent >= free:
		return Held{Reason: reasons.Queued, Measured: float64(urgent)}
	default:
		return Held{}
	}
}

// pulling gives how many have a place to pull.
func (d *admission) pulling(now time.Time) (n int) {
	for _, t := range d.queue.arrivals {
		n += one(d.pulls(now, t))
	}
	return n
}
