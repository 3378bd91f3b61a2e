package throttle

import (
	"math"
	"time"
)

// reserveLocked decides whether t may wait near its turn: there is room for all that come
// before it, of whom some may be away for a moment, and for it; and no more than twice the
// room are near. One whose MaxWait is over gets its reservation in any case, if no other
// such is near. One that a bound of Running holds does not: nobody knows for how long.
func (l *Limiter) reserveLocked(now time.Time, t *Ticket, waitable time.Duration) Decision {
	f := l.forecastLocked(now, waitable)
	room := l.roomLocked(now, &f)
	c := l.comesBeforeLocked(now, t, &f)
	held, ok := l.mayPullLocked(now, t)
	hours := c.held.Reason == PolicyRunning || c.held.Reason == Unadmittable
	switch {
	case hours, ok && c.held.Reason != "":
		held = c.held
	case ok && (c.before >= room || c.near >= 2*room):
		held = Held{Reason: GateRoom, Measured: float64(max(c.before, c.near)), Threshold: float64(room)}
	case ok:
		return Decision{Admitted: true, Ahead: c.before}
	}
	if !hours && l.mayPassRoomLocked(now, t) {
		return Decision{Admitted: true, Ahead: c.before}
	}
	return Decision{Reason: held.Reason, Held: held, Ahead: l.aheadLocked(t)}
}

// comers are those that come before a ticket, and how many others are near their turn,
// as far as the limits of their groups are expected to let them start in time.
type comers struct {
	before, near int
	held         Held // what of a group has no room for the ticket; the zero value: nothing
}

func (l *Limiter) comesBeforeLocked(now time.Time, t *Ticket, f *forecast) (c comers) {
	s := l.scanLocked()
	behind := false
	for _, o := range l.orderLocked() {
		if o == t {
			if c.held = s.noRoom(t, f); c.held.Reason != "" {
				return c
			}
			behind = true
			continue
		}
		if !o.expected(now) || (behind && !o.near(now)) {
			continue
		}
		if h := s.runningHolds(o); h.in != nil {
			if !behind {
				s.stop(&h)
			}
			continue
		}
		if !s.reserve(o, f, behind, o.near(now)) {
			continue
		}
		if !behind {
			c.before++
		}
		if o.near(now) {
			c.near++
		}
	}
	c.held = s.tooManyNear(t, f)
	return c
}

// reserve counts a ticket among those that come before, in its groups too, if their limits
// are expected to let it start in time.
func (s *scan) reserve(t *Ticket, f *forecast, behind, near bool) bool {
	if t.pod == nil {
		return true
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		if g := s.group(in.group); !in.bypass && g.taken.pods >= int64(s.lets(in, t.pod.running, f)) {
			return false
		}
	}
	if !behind {
		s.keep(t)
	}
	for i := range t.pod.in {
		g := s.group(t.pod.in[i].group)
		g.taken.pods++
		if near {
			g.near++
		}
	}
	return true
}

// noRoom gives what of a group has no room for the ticket beside those that come before
// it. Where a group lets any pod start at all, there is room for one, which is there when
// it does.
func (s *scan) noRoom(t *Ticket, f *forecast) Held {
	if h := s.runningHolds(t); h.in != nil {
		return h.held()
	}
	if t.pod == nil {
		return Held{}
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		if in.bypass {
			continue
		}
		g := s.group(in.group)
		lets := s.lets(in, t.pod.running, f)
		if !in.startsNever() {
			lets = max(1, lets)
		}
		if g.taken.pods >= int64(lets) {
			return s.noRoomIn(t, in, int(g.taken.pods), lets)
		}
	}
	return Held{}
}

// tooManyNear is the same of those near their turn: no more than twice as many.
func (s *scan) tooManyNear(t *Ticket, f *forecast) Held {
	if t.pod == nil {
		return Held{}
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		if lets := max(1, s.lets(in, t.pod.running, f)); !in.bypass && lets < math.MaxInt32/2 && s.group(in.group).near >= 2*lets {
			return s.noRoomIn(t, in, s.group(in.group).near, lets)
		}
	}
	return Held{}
}

// noRoomIn says that a group has no room, by what holds the ticket now, if anything does.
func (s *scan) noRoomIn(t *Ticket, in *podInGroup, before, lets int) Held {
	now := s.l.scanLocked()
	if h := now.startingHolds(in, t.pod.running); h.in != nil {
		return h.held()
	}
	return Held{Reason: GateRoom, Measured: float64(before), Threshold: float64(lets)}
}

// lets gives how many such as the pod the limits on the starts of a group are expected to
// let start while a process can wait near its turn.
func (s *scan) lets(in *podInGroup, running bool, f *forecast) int {
	g, limits := in.group, in.group.limits
	if limits == noLimits {
		return math.MaxInt32
	}
	least := float64(math.MaxInt32)
	atATime := func(more, most int64) {
		slots := int(min(most, math.MaxInt32))
		least = min(least, f.starts(int(min(max(0, more), most)), g.since, slots, slots))
	}
	if b := limits.starting; b.pods >= 0 {
		atATime(b.pods-g.starting.pods, b.pods)
	}
	for r, most := range limits.starting.requests {
		if ask := in.asks[r]; most >= 0 && ask > 0 {
			atATime((most-g.starting.requests[r])/ask, most/ask)
		}
	}
	if most, bounded := limits.given.Pacer.allows(g.ready); bounded && !running {
		more := max(0, int64(most)-g.paced())
		atATime(more, min(int64(most), g.starting.pods+more))
	}
	if limits.given.Claims && g.claims >= 0 {
		atATime(int64(g.claims)-g.starting.pods, int64(g.claims))
	}
	return max(g.left, int(least))
}

// mayPassRoomLocked tells whether t gets its reservation though there is no room or no
// place to pull: it has waited for too long, and no other such is near its turn.
func (l *Limiter) mayPassRoomLocked(now time.Time, t *Ticket) bool {
	if now.Before(t.due) {
		return false
	}
	if o := l.passedRoom; o != nil && o != t && o.state == Waiting && o.near(now) {
		return false
	}
	for _, o := range l.queue.arrivals {
		if o != t && o.waiters > 0 && !now.Before(o.due) {
			return false
		}
	}
	l.passedRoom = t
	return true
}

// pulls tells whether the ticket has a place to pull. A place is given back after as long
// as a start may take: an image that cannot be pulled must not keep out all others.
func (l *Limiter) pulls(now time.Time, t *Ticket) bool {
	return !t.pullsSince.IsZero() && now.Sub(t.pullsSince) < l.settings.startTimeout()
}

// mayPullLocked tells whether the ticket finds a place among those that pull images. One
// that has been at a container needs none. A place is kept for a pod of a higher priority
// that will be back at its sandbox within seconds, unless a group holds it.
func (l *Limiter) mayPullLocked(now time.Time, t *Ticket) (Held, bool) {
	most := l.settings.MaxPulling
	if most <= 0 || t.pulled || l.pulls(now, t) {
		return Held{}, true
	}
	s := l.scanLocked()
	pulling, urgent := 0, 0
	for _, o := range l.queue.arrivals {
		if l.pulls(now, o) {
			pulling++
		}
		if o.priority <= t.priority || o.reserved || o.pulled || !o.expected(now) {
			continue
		}
		if h := s.holds(o); h.in == nil {
			urgent++
		}
	}
	switch free := most - pulling; {
	case free <= 0:
		return Held{Reason: Pulling, Measured: float64(pulling), Threshold: float64(most)}, false
	case urgent >= free:
		return Held{Reason: Queued, Measured: float64(urgent)}, false
	default:
		return Held{}, true
	}
}
