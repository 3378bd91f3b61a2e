package leases

import (
	"cmp"
	"slices"
	"time"
)

// simEvent is something that happens at a time.
type simEvent struct {
	at time.Duration
	do func()
}

// eventQueue gives events by time, those of the same time in the order in which they
// were added.
type eventQueue struct{ later []simEvent } // the next one last

func (q *eventQueue) add(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(q.later, at, func(e simEvent, at time.Duration) int {
		return cmp.Or(cmp.Compare(at, e.at), 1) // before those of the same time, which are next
	})
	q.later = slices.Insert(q.later, i, simEvent{at: at, do: do})
}

// before tells whether anything happens until then.
func (q *eventQueue) before(end time.Duration) bool {
	return len(q.later) > 0 && q.later[len(q.later)-1].at <= end
}

func (q *eventQueue) next() simEvent {
	last := q.later[len(q.later)-1]
	q.later = q.later[:len(q.later)-1]
	return last
}
