package throttle

import (
	"cmp"
	"slices"
)

// order is a set of tickets, sorted by the order of the queue.
type order struct{ tickets []*Ticket }

// repeatsCounted is the number of repeats beyond which one more makes no
// difference: kubelet's back-off has reached its longest by then.
const repeatsCounted = 5

// before is the order of the queue: priority, then first starts before repeated
// ones, then arrival, then the order of joining.
func before(a, b *Ticket) int {
	return cmp.Or(
		cmp.Compare(b.priority, a.priority),
		cmp.Compare(min(a.repeats, repeatsCounted), min(b.repeats, repeatsCounted)),
		a.arrived.Compare(b.arrived),
		cmp.Compare(a.seq, b.seq),
	)
}

func (o *order) len() int { return len(o.tickets) }

func (o *order) first() *Ticket {
	if len(o.tickets) == 0 {
		return nil
	}
	return o.tickets[0]
}

// rank is the number of tickets in the set that go before t.
func (o *order) rank(t *Ticket) int {
	i, _ := slices.BinarySearchFunc(o.tickets, t, before)
	return i
}

// insert adds t; a ticket that is in the set already stays once.
func (o *order) insert(t *Ticket) {
	if i, found := slices.BinarySearchFunc(o.tickets, t, before); !found {
		o.tickets = slices.Insert(o.tickets, i, t)
	}
}

// remove takes t out; one that is not in the set is no error.
func (o *order) remove(t *Ticket) {
	if i, found := slices.BinarySearchFunc(o.tickets, t, before); found {
		o.tickets = slices.Delete(o.tickets, i, i+1)
	}
}
