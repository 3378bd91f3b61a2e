package throttle

import (
	"cmp"
	"slices"
	"time"
)

// repeatsCounted is the number of repeats at which kubelet's back-off has reached its longest.
const repeatsCounted = 5

// queue holds the Waiting tickets in their order, and the flows of all tickets.
type queue struct {
	settings *Settings
	groups   *groups
	flows    map[string]*flow
	arrivals []*Ticket // by band, then arrival
	order    []*Ticket // by band, then round, then arrival; wrong while stale
	stale    bool
	stuck    []*Ticket // that ended Stuck and still count against their flow, by their ends
}

// flow is the pods that share their turns: those of a namespace.
type flow struct {
	name    string
	tickets int // Waiting or Starting, or among those that ended Stuck and still count
	load    int // of them, those that were admitted
	waiting int // scratch of the sort
}

// byArrival is the order of the queue without the flows.
func byArrival(a, b *Ticket) int {
	return cmp.Or(byBand(a, b), firstCome(a, b))
}

// byBand compares what goes before the flows: priority and repeats. Tickets that are equal in
// both are a band, in which flows take turns.
func byBand(a, b *Ticket) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(min(a.repeats, repeatsCounted), min(b.repeats, repeatsCounted))
}

// firstCome compares by arrival, and at the same time by who joined first.
func firstCome(a, b *Ticket) int {
	return cmp.Or(a.arrived.Compare(b.arrived), cmp.Compare(a.seq, b.seq))
}

func (q *queue) insert(t *Ticket) {
	i, _ := slices.BinarySearchFunc(q.arrivals, t, byArrival)
	q.arrivals = slices.Insert(q.arrivals, i, t)
	q.stale = true
}

func (q *queue) remove(t *Ticket) {
	q.arrivals = slices.DeleteFunc(q.arrivals, func(o *Ticket) bool { return o == t })
	q.stale = true
}

// move changes what the place of a ticket depends on.
func (q *queue) move(t *Ticket, change func()) {
	q.remove(t)
	change()
	q.insert(t)
}

// inOrder gives the tickets in the order of the queue: of a flow with n starts under way, the
// first has the round n, the next n+1, and so on.
func (q *queue) inOrder() []*Ticket {
	if !q.stale {
		return q.order
	}
	q.stale = false
	q.order = append(q.order[:0], q.arrivals...)
	if q.settings.NoFairness {
		return q.order
	}
	band := 0
	for i, t := range q.arrivals {
		band += one(i > 0 && byBand(q.arrivals[i-1], t) != 0)
		t.key = int64(band)<<42 | int64(t.flow.load+t.flow.waiting)<<21 | int64(i)
		t.flow.waiting++
	}
	for _, t := range q.arrivals {
		t.flow.waiting = 0
	}
	slices.SortFunc(q.order, func(a, b *Ticket) int { return cmp.Compare(a.key, b.key) })
	return q.order
}

// fairer tells whether a goes before b, of the same band.
func (q *queue) fairer(a, b *Ticket) bool {
	if c := cmp.Compare(a.flow.load, b.flow.load); c != 0 && !q.settings.NoFairness {
		return c < 0
	}
	return firstCome(a, b) < 0
}

// enter gives the flow of that name, to one more ticket.
func (q *queue) enter(name string) *flow {
	f := q.flows[name]
	if f == nil {
		f = &flow{name: name}
		q.flows[name] = f
	}
	f.tickets++
	return f
}

// leave ends what a ticket counts for in its flow.
func (q *queue) leave(t *Ticket) {
	q.stale = true
	t.flow.load -= one(t.admission != "")
	if t.flow.tickets--; t.flow.tickets == 0 {
		delete(q.flows, t.flow.name)
	}
}

// forgetStuck ends what starts that ended Stuck count for, as long after as a start may take.
func (q *queue) forgetStuck(now time.Time) {
	for len(q.stuck) > 0 && now.Sub(q.stuck[0].ended) >= q.settings.StartTimeout {
		q.leave(q.stuck[0])
		q.stuck = q.stuck[1:]
	}
}
