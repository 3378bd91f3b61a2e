package throttle

import (
	"slices"
	"time"
)

const (
	// arrivalGrace is how long a pod with a reservation is expected. One that takes longer
	// pulls images, and must not keep out those that could start meanwhile.
	arrivalGrace = 10 * time.Second
	// returnsWithin is how long a pod that was refused is expected: kubelet is back within
	// 15 seconds, and then has something to do.
	returnsWithin = 20 * time.Second
)

// reserveLocked decides whether t may wait near its turn: there is room for all that come
// before it, of whom some may be away for a moment, and for it; and no more than twice the
// room are near. One whose MaxWait is over gets its reservation in any case, if no other
// such is near. One that a bound of Running holds does not: nobody knows for how long.
func (l *Limiter) reserveLocked(now time.Time, t *Ticket, waitable time.Duration) Decision {
	f := l.forecastLocked(now, waitable)
	room := l.roomLocked(now, &f)
	c := l.comesBeforeLocked(t, &f)
	hours := c.held.Reason == PolicyRunning || c.held.Reason == Unadmittable
	held := l.pullingHoldsLocked(now, t)
	switch {
	case hours, held.none() && !c.held.none():
		held = c.held
	case held.none() && (c.before >= room || c.near >= 2*room):
		held = Held{Reason: GateRoom, Measured: float64(max(c.before, c.near)), Threshold: float64(room)}
	}
	if held.none() || (!hours && l.mayPassRoomLocked(now, t)) {
		return Decision{Admitted: true, Ahead: c.before}
	}
	return Decision{Reason: held.Reason, Held: held, Ahead: l.placeLocked(t).ahead}
}

// comers are those that come before a ticket, and how many others are near their turn,
// as far as the limits of their groups are expected to let them start in time.
type comers struct {
	before, near int
	held         Held // what of a group has no room for the ticket; the zero value: nothing
}

func (l *Limiter) comesBeforeLocked(t *Ticket, f *forecast) (c comers) {
	l.beginScanLocked()
	behind := false
	for _, o := range l.orderLocked() {
		near := o.near(f.now)
		switch {
		case o == t:
			if c.held = l.noRoomLocked(t, f); !c.held.none() {
				return c
			}
			behind = true
		case behind && near && !o.groupHold().byRunning() && f.comes(o):
			c.near++
		case behind || !o.expected(f.now):
		default:
			if h := o.groupHold(); h.byRunning() {
				h.close()
				continue
			}
			if f.comes(o) {
				o.pod.keepRunning(nil)
				c.before++
				if near {
					c.near++
				}
			}
		}
	}
	return c
}

// comes counts a ticket in its groups, if their limits are expected to let it start in
// time.
func (f *forecast) comes(t *Ticket) bool {
	if t.pod == nil {
		return true
	}
	for i := range t.pod.in {
		if in := &t.pod.in[i]; !in.bypass && in.group.taken >= f.lets(t.pod, in.group) {
			return false
		}
	}
	for i := range t.pod.in {
		t.pod.in[i].group.taken++
	}
	return true
}

// noRoomLocked gives what of a group has no room for the ticket beside those that come
// before it, by what holds it now, if anything does. Where a group lets any pod start at
// all, there is room for one, which is there when it does.
func (l *Limiter) noRoomLocked(t *Ticket, f *forecast) Held {
	if h := t.groupHold(); h.byRunning() {
		return h.held()
	}
	if t.pod == nil {
		return Held{}
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		lets := f.lets(t.pod, in.group)
		if t.pod.aloneExceeds(in.group, PolicyStarting) == nil {
			lets = max(1, lets)
		}
		before := in.group.taken
		if in.bypass || before < lets {
			continue
		}
		l.beginScanLocked()
		if h := t.groupHold(); !h.none() {
			return h.held()
		}
		return Held{Reason: GateRoom, Measured: float64(before), Threshold: float64(lets)}
	}
	return Held{}
}

// mayPassRoomLocked tells whether t gets its reservation though there is no room or no
// place to pull: it has waited for too long, and no other such is near its turn.
func (l *Limiter) mayPassRoomLocked(now time.Time, t *Ticket) bool {
	if now.Before(t.due) {
		return false
	}
	return !slices.ContainsFunc(l.queue.arrivals, func(o *Ticket) bool { return o != t && o.near(now) && !now.Before(o.due) })
}

// pulls tells whether the ticket has a place to pull. A place is given back after as long
// as a start may take: an image that cannot be pulled must not keep out all others.
func (l *Limiter) pulls(now time.Time, t *Ticket) bool {
	return !t.pullsSince.IsZero() && now.Sub(t.pullsSince) < l.settings.StartTimeout
}

// pullingHoldsLocked tells what keeps the ticket from a place among those that pull images.
// One that has been at a container needs none. A place is kept for a pod of a higher
// priority that will be back at its sandbox within seconds, unless a group holds it.
func (l *Limiter) pullingHoldsLocked(now time.Time, t *Ticket) Held {
	most := l.settings.MaxPulling
	if most <= 0 || t.pulled || l.pulls(now, t) {
		return Held{}
	}
	l.beginScanLocked()
	pulling, urgent := 0, 0
	for _, o := range l.queue.arrivals {
		if l.pulls(now, o) {
			pulling++
		}
		if o.priority > t.priority && !o.reserved && !o.pulled && o.expected(now) && o.groupHold().none() {
			urgent++
		}
	}
	switch free := most - pulling; {
	case free <= 0:
		return Held{Reason: Pulling, Measured: float64(pulling), Threshold: float64(most)}
	case urgent >= free:
		return Held{Reason: Queued, Measured: float64(urgent)}
	default:
		return Held{}
	}
}
