package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// plan sets how many may start at a time, by what the adaptive limit allows those that wait, in their order.
func (d *admission) plan(now time.Time) {
	by := d.slots.adaptive
	underWay := make([]adaptive.Start, 0, len(d.slots.inFlight))
	for _, t := range d.slots.inFlight {
		underWay = append(underWay, t.start())
	}
	all := d.queue.starts(func(*Ticket) bool { return true })
	reach := by.Allow(now, underWay, d.slots.taken(), all, all)
	limit := by.Allow(now, underWay, d.slots.taken(), d.queue.starts((*Ticket).waits), all)
	d.slots.setLimit(limit, max(limit, reach, by.Reach()))
	d.slots.planned = true
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
