package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// leastCores is the least that a start counts where cores are counted: 20 starts that only wait count as one core.
const leastCores = 0.05

// plan sets how many pods may start at a time: as many of the waiting pods, in their order, as the adaptive limit and
// the limit on cores allow.
func (d *admission) plan(now time.Time) {
	for _, t := range d.queue.arrivals {
		t.passes = false
	}
	all, _ := d.queue.starts(func(t *Ticket) bool { return !t.preparation.fails })
	present, tickets := d.queue.starts((*Ticket).waits)
	limit, comes := noLimit, noLimit
	if by := d.slots.adaptive; by != nil {
		underWay := make([]adaptive.Start, 0, len(d.slots.inFlight))
		for _, t := range d.slots.inFlight {
			underWay = append(underWay, t.start())
		}
		found, passing := by.Allow(now, underWay, d.slots.taken(), present, all)
		for _, i := range passing {
			tickets[i].passes = true
		}
		limit, comes = found, by.AllowAll(now, underWay, d.slots.taken(), all)
	}
	d.slots.found = limit
	if d.settings.CountsCores() {
		limit, comes = min(limit, d.slots.withCores(present)), min(comes, d.slots.withCores(all))
	}
	d.slots.setLimit(limit, comes)
	d.slots.planned = true
}

// withCores returns how many pods may start at a time by the cores that they keep busy: the starts under way, then the
// waiting pods up to the first for which no cores are left. Each core that is left then counts as one more start. If the
// starts under way exceed the cores, the result is less than their number.
func (s *slots) withCores(waiting []adaptive.Start) (starts int) {
	const rounding = 1e-9
	left := float64(s.settings.MaxConcurrent) + rounding
	for _, t := range s.inFlight {
		if t.slot {
			if left -= cores(t.start()); left < 0 && starts > 0 {
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
	return !s.settings.CountsCores() || s.withCores([]adaptive.Start{t.start()}) > s.taken()
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
	s.setLimit(limit, s.ifPresent)
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
	q.begin()
	q.each(meant, func(t *Ticket, h *ask) bool {
		if h != nil {
			return true
		}
		start := t.start()
		if n := len(all); n > 0 {
			start.Band = all[n-1].Band + oneIf(byBand(tickets[n-1], t) != 0)
		}
		all, tickets = append(all, start), append(tickets, t)
		return true
	})
	return all, tickets
}

func (t *Ticket) start() adaptive.Start {
	return adaptive.Start{Kind: t.profile.Kind, Cost: t.profile.Cost, Patience: t.profile.Patience, Began: t.admitted, Use: t.use}
}
