package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// leastCores is the least that a start counts where cores are counted: 20 starts that only wait count as one core.
const leastCores = 0.05

// retriesWithin is how long it takes until kubelet tries a refused pod again.
const retriesWithin = 15 * time.Second

// plan sets how many pods may start at a time: as many of the waiting pods, in their order, as the adaptive limit and
// the limit on cores allow.
func (d *admission) plan(now time.Time) {
	for _, t := range d.queue.arrivals {
		t.passes = false
	}
	present, tickets := d.queue.starts(func(t *Ticket) bool { return mayStart(now, t) })
	limit := noLimit
	if by := d.slots.adaptive; by != nil {
		found, passing := by.Allow(now, d.slots.underWay(), d.slots.taken(), present)
		for _, i := range passing {
			tickets[i].passes = true
		}
		limit = found
	}
	d.slots.found = limit
	if d.settings.CountsCores() {
		limit = min(limit, d.slots.withCores(present))
	}
	d.slots.setLimit(limit)
	d.slots.planned, d.slots.looked = true, false
}

// allowsSoon returns how many pods may start at a time before a refused pod could be back, if all that wait come: for these,
// there are places in the gate.
func (s *slots) allowsSoon(now time.Time, q *queue) int {
	if !s.byKind() {
		return s.limit
	}
	if !s.looked {
		all, _ := q.starts(func(t *Ticket) bool { return !t.preparation.fails })
		s.soon, s.looked = s.most(), true
		if s.adaptive != nil {
			s.soon = min(s.soon, s.adaptive.AllowSoon(now, retriesWithin, s.underWay(), s.taken(), all))
		}
		if s.settings.CountsCores() {
			s.soon = min(s.soon, s.withCores(all))
		}
	}
	return max(s.limit, s.soon)
}

// underWay returns the starts under way.
func (s *slots) underWay() []adaptive.Start {
	all := make([]adaptive.Start, 0, len(s.inFlight))
	for _, t := range s.inFlight {
		all = append(all, startOf(t))
	}
	return all
}

// withCores returns how many pods may start at a time by the cores that they keep busy: the starts under way, then the
// waiting pods up to the first for which no cores are left. Each core that is left then counts as one more start. If the
// starts under way exceed the cores, the result is less than their number.
func (s *slots) withCores(waiting []adaptive.Start) (starts int) {
	const rounding = 1e-9
	left := float64(s.settings.MaxConcurrent) + rounding
	for _, t := range s.inFlight {
		if t.slot {
			if left -= cores(startOf(t)); left < 0 && starts > 0 {
				return starts
			}
			starts++
		}
	}
	for _, next := range waiting {
		if left -= cores(next); left < 0 && starts > 0 {
			return starts
		}
		starts++
	}
	return starts + int(max(0, left))
}

// fits reports whether t can start within the cores, beside the starts under way or alone. It is true if cores are not
// counted.
func (s *slots) fits(t *Ticket) bool {
	return !s.settings.CountsCores() || s.withCores([]adaptive.Start{startOf(t)}) > s.taken()
}

// follow adjusts the limit to the ticket that is next now: the order may have changed since the plan was made.
func (s *slots) follow(next *Ticket) {
	if !s.settings.CountsCores() {
		return
	}
	limit := min(s.limit, s.taken())
	if s.fits(next) {
		limit = min(s.found, max(s.limit, s.taken()+1))
	}
	s.setLimit(limit)
}

// cores returns how many cores a start is expected to keep busy at its peak.
func cores(s adaptive.Start) float64 {
	if s.Cost == nil {
		return 1
	}
	return max(leastCores, s.Cost.Peak.Mean)
}

// starts returns the meant tickets that no group holds, and their starts.
func (q *queue) starts(meant func(*Ticket) bool) (all []adaptive.Start, tickets []*Ticket) {
	q.each(q.begin(&q.scanned), meant, func(t *Ticket, h *ask) bool {
		if h != nil {
			return true
		}
		start := startOf(t)
		if n := len(all); n > 0 {
			start.Band = all[n-1].Band + oneIf(byBand(tickets[n-1], t) != 0)
		}
		all, tickets = append(all, start), append(tickets, t)
		return true
	})
	return all, tickets
}

func startOf(t *Ticket) adaptive.Start {
	return adaptive.Start{Kind: t.profile.Kind, Cost: t.profile.Cost, Patience: t.profile.Patience, Began: t.admitted, Use: t.use}
}
