package throttle

import (
	"math"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// comesWithin is how long a pod is awaited. If it was refused, kubelet retries within 15 seconds, and needs some time
	// before it asks. If it has a reservation, it came 13 seconds later where a node was loaded 14 times over. A pod that
	// takes longer pulls images, and must not keep out pods that could start meanwhile.
	comesWithin = 20 * time.Second
	// sparedBy is how long before the end of comesWithin a refused pod comes back, in the mean.
	sparedBy = 7500 * time.Millisecond
)

// reserve decides whether t may wait near its turn. An overdue pod may in any case if it starts at once. A pod that a
// bound of Running holds may not, because it may be held for hours. During a Pause, a pod may only if its process can wait
// until after its end, and starts begin only then. The result does not say how many tickets are ahead.
func (d *admission) reserve(now time.Time, t *Ticket, waitable time.Duration) Decision {
	held := d.pause.held(now)
	if left := waitable - held.Until.Sub(now); held.none() || left > 0 {
		if !held.none() {
			waitable = left
		}
		held = d.gateHolds(now, t, waitable)
	}
	hours := held.Reason == reasons.PolicyRunning || held.Reason == reasons.Unadmittable || held.Reason == reasons.StartAfter
	pulling := d.pullingHolds(now, t)
	t.lacksPermit = held.none() && !pulling.none()
	if !hours && !pulling.none() {
		held = pulling
	}
	passes := !hours && !now.Before(t.due()) && d.overdueGoesNext(now, t)
	if held.none() || passes {
		return Decision{Granted: true}
	}
	return Decision{Reason: held.Reason, Held: held}
}

// overdueGoesNext reports whether an overdue ticket starts at once, over the limit if need be, when its process comes: no
// start is over it, no other pod that may exceed it is overdue, and the next slot is not for the queue.
func (d *admission) overdueGoesNext(now time.Time, t *Ticket) bool {
	next := d.overLimit == nil
	d.queue.each(d.queue.begin(&d.queue.scanned), func(o *Ticket) bool { return o != t && o.occupies(now) }, func(o *Ticket, heldBy *ask) bool {
		next = next && (now.Before(o.due()) || heldBy.ofRunning()) && !(d.queuesTurn && heldBy == nil)
		return next
	})
	return next
}

// gateHolds returns what holds the ticket if each limit allows what it allows within waitable for sure: a group, or that
// the pod's turn may come later, or that the pod would make one behind it late that has a place. Before it go the pods
// before it in the queue that occupy the gate or are awaited. Of the same flow and band, a pod that is awaited does not
// count if it is not back before the turn of this one. Behind it, pods of a later band do not count, and none if the pod
// had a place and comes late, as after a long pull. The rate holds the ticket while the next token comes only after waitable.
func (d *admission) gateHolds(now time.Time, t *Ticket, waitable time.Duration) (held Held) {
	late := t.refusal == RetriedLate
	f := d.forecast(now, !late, d.slots.lentTo(now, t.flow))
	turn := now.Add(d.turnBehind(now, t))
	quota := d.quota(now, waitable)
	promised := t.reserved && now.Before(t.awaitedUntil)
	var expected *forecast
	if len(t.pod.asks) > 0 {
		expected = d.forecast(now, false, 0)
		expected.byKind = true
	}
	if late {
		waitable /= 2 // what is expected may be wrong
	}
	inside, places, fits, passed := 0, 0, false, false
	s := d.queue.begin(&d.queue.scanned)
	for _, g := range d.queue.groups.all {
		f.allowForecast(s, waitable, t, g)
	}
	d.allowOneMore(s, expected, t, promised && !t.pulled, waitable)
	include := func(o *Ticket) bool {
		switch {
		case o == t || o.occupies(now):
			return true
		case passed || !o.awaited(now):
			return false
		default:
			return o.flow != t.flow || byBand(o, t) != 0 || len(o.pod.asks) > 0 || !turn.Before(o.awaitedUntil.Add(-sparedBy))
		}
	}
	d.queue.each(s, include, func(o *Ticket, heldBy *ask) bool {
		switch {
		case o == t && heldBy != nil:
			held = s.describe(heldBy)
			return false
		case o == t:
			passed, fits = true, f.turn() <= waitable
			f.start(t)
		case heldBy == nil && !passed:
			inside++
			if f.turn() <= waitable {
				places++
				f.start(o)
			}
		case heldBy == nil && !t.reserved && byBand(o, t) <= 0:
			inside++
			late := o.promisedUntil.After(now) && later(now, d.pause.Until).Add(f.turn()).After(o.promisedUntil)
			fits = fits && !late
			f.start(o)
		}
		return true
	})
	if next := d.limits.heldByRate(now); held.none() && next.Until.After(now.Add(waitable)) {
		held = next
	}
	if held.none() && !promised && (inside >= quota || !fits) {
		held = Held{Reason: reasons.GateFull, Measured: float64(inside), Threshold: float64(min(places, quota)), NoneEnded: d.slots.took.n == 0}
	}
	return held
}

// turnBehind returns when the turn of the ticket is expected, from now, behind the tickets that occupy the gate.
func (d *admission) turnBehind(now time.Time, t *Ticket) time.Duration {
	f, passed := d.forecast(now, false, d.slots.lentTo(now, t.flow)), false
	inside := d.queue.couldStart(1000, func(o *Ticket) bool {
		passed = passed || o == t
		return o != t && o.occupies(now) && (!passed || byBand(o, t) <= 0)
	})
	for range inside {
		f.start(t)
	}
	return f.turn()
}

// pulls reports whether the ticket has a pull permit. It loses the permit after StartTimeout: an image
// that cannot be pulled must not keep out all other pods.
func (d *admission) pulls(now time.Time, t *Ticket) bool {
	return !t.pullsSince.IsZero() && now.Sub(t.pullsSince) < d.settings.StartTimeout
}

// pullingHolds returns what keeps the ticket from a pull permit. A permit is kept for each pod that is awaited and lacked
// only that when it asked last, if its flow has fewer permits or, with as many, its priority is higher.
func (d *admission) pullingHolds(now time.Time, t *Ticket) Held {
	most := d.settings.MaxPulling
	if most <= 0 || t.pulled || d.pulls(now, t) {
		return Held{}
	}
	d.queue.countPulls()
	urgent := d.queue.couldStart(math.MaxInt, func(o *Ticket) bool {
		return o.lacksPermit && o.awaited(now) && d.queue.pullsBefore(o, t)
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

// pulling returns how many tickets have a pull permit.
func (d *admission) pulling(now time.Time) (n int) {
	for _, t := range d.queue.arrivals {
		n += oneIf(d.pulls(now, t))
	}
	return n
}
