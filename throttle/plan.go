package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// leastCores is what a start counts at least where cores are counted: 20 that only wait count as one core.
const leastCores = 0.05

// plan sets how many may start at a time, by what the adaptive limit, and that on cores, allow those that wait, in
// their order.
func (d *admission) plan(now time.Time) {
	all := d.queue.starts(func(*Ticket) bool { return true })
	present := d.queue.starts((*Ticket).waits)
	limit, reach := noLimit, noLimit
	if by := d.slots.adaptive; by != nil {
		underWay := make([]adaptive.Start, 0, len(d.slots.inFlight))
		for _, t := range d.slots.inFlight {
			underWay = append(underWay, t.start())
		}
		reach = by.Allow(now, underWay, d.slots.taken(), all, all)
		limit = by.Allow(now, underWay, d.slots.taken(), present, all)
		reach = max(limit, reach, by.Reach())
	}
	d.slots.found = limit
	if d.settings.CountsCores() {
		limit, reach = min(limit, d.slots.withCores(present)), min(reach, d.slots.withCores(all))
	}
	d.slots.setLimit(limit, reach)
	d.slots.planned = true
}

// withCores gives how many may start at a time where cores are counted: those under way, then those that wait, up to the
// first for which no cores are left, and behind them as many as are cores left, if each keeps one busy. So it is less
// than are under way where these exceed the cores.
func (s *slots) withCores(waiting []adaptive.Start) (starts int) {
	left := s.mostCores()
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

// mostCores gives how many cores the starts at a time may be expected to keep busy.
func (s *slots) mostCores() float64 {
	const rounding = 1e-9
	return float64(s.settings.MaxConcurrent) + rounding
}

// fits tells whether t can start within the cores, beside those under way or alone; if cores are not counted, it does.
func (s *slots) fits(t *Ticket) bool {
	if !s.settings.CountsCores() {
		return true
	}
	left, alone := s.mostCores()-cores(t.start()), true
	for _, o := range s.inFlight {
		if o.slot {
			left, alone = left-cores(o.start()), false
		}
	}
	return alone || left >= 0
}

// follow has the limit be right for the one that is next: the plan was made for the order as it was then.
func (s *slots) follow(next *Ticket) {
	if !s.settings.CountsCores() {
		return
	}
	limit := min(s.limit, s.taken())
	if s.fits(next) {
		limit = min(s.found, max(s.limit, s.taken()+1))
	}
	s.setLimit(limit, s.limitSoon)
}

// cores is how many cores a start is expected to keep busy at its peak.
func cores(s adaptive.Start) float64 {
	if s.Expected == nil {
		return 1
	}
	return max(leastCores, s.Expected.Peak.Mean)
}

// starts gives those of the queue that are meant and that no group holds.
func (q *queue) starts(meant func(*Ticket) bool) (all []adaptive.Start) {
	q.begin()
	q.each(meant, func(t *Ticket, h *ask) bool {
		if h == nil {
			all = append(all, t.start())
		}
		return true
	})
	return all
}

func (t *Ticket) start() adaptive.Start {
	return adaptive.Start{Kind: t.foreseen.Kind, Expected: t.foreseen.Cost, Patience: t.foreseen.Patience, Began: t.admitted, Use: t.use}
}
