package throttle

import (
	"cmp"
	"slices"
	"time"
)

// The queue
//
// The Waiting tickets are in one slice, ordered by
//
//   - round: in a flow (a namespace) with n starts under way, the first ticket has the
//     round n, the next n+1, and so on;
//   - priority, the higher first;
//   - repeats: a first start goes before the start of a container that exited;
//   - arrival.
//
// This is fair queuing between flows, as in the API server's Priority and Fairness, with
// starts under way in place of seats of requests: the flow with the fewest under way has
// the next start. A start that ended Stuck counts against its flow for one more
// StartTimeout, so a tenant whose pods never become ready gets no more slots than others. Every
// tenant may use high priorities, so they order the pods of a flow, and flows with equally many
// starts under way, but give a flow no more slots.

// repeatsCounted is the number of repeats after which kubelet's back-off is at its longest.
const repeatsCounted = 5

// queue holds the Waiting tickets in their order, and the flows of all tickets.
type queue struct {
	settings *Settings
	groups   *groups
	flows    map[string]*flow
	arrivals []*Ticket // by band, then arrival
	order    []*Ticket // by round, then band, then arrival; out of date while stale
	stale    bool
	stuck    []*Ticket // ended Stuck and still count against their flow; by their ends
	scanned  scan      // memory of the latest scan of candidates, or of some tickets
	lined    scan      // memory of the latest line
}

// flow is the pods that share their turns: the pods of a namespace.
type flow struct {
	name    string
	tickets int // Waiting, Starting, or in queue.stuck
	load    int // how many of them were admitted
	waiting int // used by inOrder only
	pulls   int // by countPulls: how many of them got a pull permit, and still pull
}

// waits returns how many tickets of the flow wait.
func (f *flow) waits() int { return f.tickets - f.load }

// byArrival compares tickets in the order of the queue without flows.
func byArrival(a, b *Ticket) int {
	return cmp.Or(byBand(a, b), firstCome(a, b))
}

// byBand compares tickets by priority and repeats. Tickets that are equal in both are a band.
func byBand(a, b *Ticket) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	return cmp.Compare(min(a.repeats, repeatsCounted), min(b.repeats, repeatsCounted))
}

// firstCome compares tickets by arrival, then by when they joined.
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

// move changes a ticket, which may change its position.
func (q *queue) move(t *Ticket, change func()) {
	q.remove(t)
	change()
	q.insert(t)
}

// inOrder returns the tickets in the order of the queue. Of a flow with n starts under way, the first
// ticket has the round n, the next n+1, and so on.
func (q *queue) inOrder() []*Ticket {
	if !q.stale {
		return q.order
	}
	q.stale = false
	q.order = append(q.order[:0], q.arrivals...)
	if q.settings.NoFairness {
		return q.order
	}
	for i, t := range q.arrivals {
		t.key = int64(t.flow.load+t.flow.waiting)<<32 | int64(i)
		t.flow.waiting++
	}
	for _, t := range q.arrivals {
		t.flow.waiting = 0
	}
	slices.SortFunc(q.order, func(a, b *Ticket) int { return cmp.Compare(a.key, b.key) })
	return q.order
}

// fairer reports whether ticket a goes before ticket b. Flows come before bands, so no priority lets a flow keep others
// waiting.
func (q *queue) fairer(a, b *Ticket) bool {
	if a.passes != b.passes {
		return a.passes
	}
	if c := cmp.Compare(a.flow.load, b.flow.load); c != 0 && !q.settings.NoFairness {
		return c < 0
	}
	return byArrival(a, b) < 0
}

// countPulls counts the pulls of all flows. A ticket that lost its permit, because an image cannot be pulled, still counts.
func (q *queue) countPulls() {
	for _, t := range q.arrivals {
		t.flow.pulls = 0
	}
	for _, t := range q.arrivals {
		t.flow.pulls += oneIf(!t.pullsSince.IsZero())
	}
}

// pullsBefore reports whether ticket a gets a pull permit before ticket b, after countPulls.
func (q *queue) pullsBefore(a, b *Ticket) bool {
	if a.flow.pulls != b.flow.pulls && !q.settings.NoFairness {
		return a.flow.pulls < b.flow.pulls
	}
	return a.priority > b.priority
}

// joinFlow adds a ticket to the flow of a name, and returns the flow.
func (q *queue) joinFlow(name string) *flow {
	f := q.flows[name]
	if f == nil {
		f = &flow{name: name}
		q.flows[name] = f
	}
	f.tickets++
	return f
}

// leaveFlow removes a ticket from its flow.
func (q *queue) leaveFlow(t *Ticket) {
	q.stale = true
	t.flow.load -= oneIf(t.admission != "")
	if t.flow.tickets--; t.flow.tickets == 0 {
		delete(q.flows, t.flow.name)
	}
}

// forgetStuck removes the tickets that ended Stuck from their flows, one StartTimeout after their ends.
func (q *queue) forgetStuck(now time.Time) {
	for len(q.stuck) > 0 && now.Sub(q.stuck[0].ended) >= q.settings.StartTimeout {
		q.leaveFlow(q.stuck[0])
		q.stuck = q.stuck[1:]
	}
}
