package throttle

import (
	"cmp"
	"slices"
	"time"
)

// repeatsCounted is the number of repeats at which kubelet's back-off has reached its longest.
const repeatsCounted = 5

// leastMaxWait is the least that a pod's own MaxWait counts as: it is no way past the queue.
const leastMaxWait = 30 * time.Second

// queue holds the Waiting tickets in their order, and the flows of all tickets.
type queue struct {
	settings *Settings
	groups   *groups
	flows    map[string]*flow
	arrivals []*Ticket // by band, then arrival
	order    []*Ticket // by band, then round, then arrival; wrong while stale
	stale    bool
}

// flow is the pods that share their turns: those of a namespace.
type flow struct {
	name     string
	tickets  int         // Waiting or Starting
	starting int         // of them
	stuck    []time.Time // until when starts that ended Stuck count
	waiting  int         // scratch of the sort
}

// load is the number of starts that count against the flow.
func (f *flow) load() int { return f.starting + len(f.stuck) }

// byArrival is the order of the queue without the flows.
func byArrival(a, b *Ticket) int {
	return cmp.Or(byBand(a, b), firstCome(a, b))
}

// byBand compares what goes before the flows.
func byBand(a, b *Ticket) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(min(a.repeats, repeatsCounted), min(b.repeats, repeatsCounted))
}

func firstCome(a, b *Ticket) int {
	return cmp.Or(a.arrived.Compare(b.arrived), cmp.Compare(a.seq, b.seq))
}

// configure follows the settings.
func (q *queue) configure() {
	for _, t := range q.arrivals {
		t.due = q.due(t)
	}
	q.stale = true
}

// due gives when the ticket has waited for as long as it may.
func (q *queue) due(t *Ticket) time.Time {
	most := q.settings.MaxWait
	if t.maxWait > 0 {
		most = min(most, max(t.maxWait, leastMaxWait))
	}
	return t.arrived.Add(most)
}

func (q *queue) insert(t *Ticket) {
	t.due = q.due(t)
	i, _ := slices.BinarySearchFunc(q.arrivals, t, byArrival)
	q.arrivals = slices.Insert(q.arrivals, i, t)
	q.stale = true
}

func (q *queue) remove(t *Ticket) {
	if i, found := slices.BinarySearchFunc(q.arrivals, t, byArrival); found {
		q.arrivals = slices.Delete(q.arrivals, i, i+1)
	}
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
		t.key = int64(band)<<42 | int64(t.flow.load()+t.flow.waiting)<<21 | int64(i)
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
	if c := cmp.Compare(a.flow.load(), b.flow.load()); c != 0 && !q.settings.NoFairness {
		return c < 0
	}
	return firstCome(a, b) < 0
}

func (q *queue) flow(name string) *flow {
	f := q.flows[name]
	if f == nil {
		f = &flow{name: name}
		q.flows[name] = f
	}
	return f
}

// stuck has a start that ended Stuck count against its flow for as long again as a start
// may take.
func (q *queue) stuck(now time.Time, f *flow) {
	f.stuck = append(f.stuck, now.Add(q.settings.StartTimeout))
	q.stale = true
}

// forgetStuck forgets those that count no longer, and flows that have nothing.
func (q *queue) forgetStuck(now time.Time) {
	for name, f := range q.flows {
		n := len(f.stuck)
		f.stuck = slices.DeleteFunc(f.stuck, func(until time.Time) bool { return !now.Before(until) })
		if len(f.stuck) != n {
			q.stale = true
		}
		if f.tickets == 0 && len(f.stuck) == 0 {
			delete(q.flows, name)
		}
	}
}
