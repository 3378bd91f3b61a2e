package throttle

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// abandonAfter is how long a ticket without a waiter is kept. kubelet retries a refused
// sandbox or container within 15 seconds, and a container that failed to start within its
// back-off of 5 minutes at most.
const abandonAfter = 10 * time.Minute

// endedKept is how many ended tickets are remembered for [Limiter.Lookup].
const endedKept = 256

// Limiter is the queue, the slots and the limits of one node. Make one with New.
// All methods are safe for concurrent use and never block.
type Limiter struct {
	mu sync.Mutex
	// What is set.
	settings Settings // with defaults
	policies map[string]GroupLimits
	bucket   *rate.Limiter // kept while there is no such limit; nil: there never was
	// What there is.
	tickets  map[string]*Ticket // by UID; the latest ticket of the pod
	queue    queue
	inFlight []*Ticket // Starting, by admission
	ended    []*Ticket // in the order of their ends, at most endedKept
	flows    map[string]*flow
	pods     []*pod   // in any group, by UID
	groups   []*group // by key
	counted  bool     // the groups are counted as their pods are now
	seq      uint64
	latest   time.Time // the time of the latest decision
	// What was granted beside the limits.
	limit           int     // starts at a time; zero: any number
	limitSoon       int     // what an adaptive limit may soon come to, where that is more
	loan            loan    // of the node
	lentUpTo        int     // starts at a time while a loan is out
	frozen          bool    // nobody is admitted in their turn
	overLimit       *Ticket // the last start over the limit, while it counts as such
	overOtherLimits bool    // overLimit exceeded more than the number of starts at a time
	queuesTurn      bool    // the next slot is the queue's, not that of a deadline
	oldestsTurn     bool    // of those overdue, the longest overdue is next
	// What was observed.
	signals    Signals
	adaptive   *adaptive.Controller // nil: off
	lost       time.Time            // when the last admitted of the starts that a probe may have killed was; zero: none was
	since      []time.Time          // scratch of sinceLocked
	debts      admissionTimes       // of those that a signal may not show yet
	admissions admissionTimes       // of those that the limits allowed, or a deadline
	took       durations
	events     []Event
	dropped    uint64 // events that nobody drained
	changed    chan struct{}
}

// New gives a limiter with the settings s, no ticket, and a full token bucket.
func New(now time.Time, s Settings) *Limiter {
	l := &Limiter{
		tickets: map[string]*Ticket{}, flows: map[string]*flow{}, latest: now, changed: make(chan struct{}, 1),
	}
	l.setLimitsLocked(now, s)
	return l
}

// Configure replaces the settings. Tickets, slots, tokens, loans and debts are kept: with
// a lower limit, the starts under way go on, and no other is admitted until their number
// is below it.
func (l *Limiter) Configure(now time.Time, s Settings) {
	now = l.lock(now)
	defer l.unlock()
	l.setLimitsLocked(now, s)
	for _, t := range l.queue.arrivals {
		t.due = l.dueLocked(t)
	}
	l.queue.stale = true
	l.admitLocked(now)
}

// Join gives the ticket of the pod: the one it has while that is Waiting or Starting,
// else a new one at its place in the queue. A Waiting ticket moves to the place of an
// earlier arrival.
func (l *Limiter) Join(now time.Time, r Request) *Ticket {
	now = l.lock(now)
	defer l.mu.Unlock()
	t := l.tickets[r.UID]
	if t == nil || t.hasEnded() {
		defer l.changedLocked()
		return l.joinLocked(now, r)
	}
	l.askedLocked(now, t)
	if arrived := earlier(now, r.Arrived); t.state == Waiting && arrived.Before(t.arrived) {
		defer l.changedLocked()
		l.replaceLocked(t, func() { t.arrived = arrived })
	}
	return t
}

// Adopt is Join for a start that is under way: it was admitted at the given time, or
// slipped through. It holds a slot at once, over the limit where reality is, and takes no
// token. Without a time, or with one to come, it began now. A ticket that is Starting
// stays as it is.
func (l *Limiter) Adopt(now time.Time, r Request, since time.Time) *Ticket {
	now = l.lock(now)
	defer l.unlock()
	t := l.tickets[r.UID]
	if t == nil || t.hasEnded() {
		t = l.joinLocked(now, r)
	}
	if t.state == Waiting {
		l.startLocked(earlier(now, since), t, reasons.Adopted, true)
	}
	return t
}

// Lookup gives the latest ticket of the pod, also one that ended if it is among the last
// 256 that did, or nil.
func (l *Limiter) Lookup(uid string) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tickets[uid]
}

// SetPriority moves a Waiting ticket to the place that the priority gives it, and
// replaces its Request.MaxWait. A pod without such a ticket is no error.
func (l *Limiter) SetPriority(now time.Time, uid string, priority int32, maxWait time.Duration) {
	now = l.lock(now)
	defer l.mu.Unlock()
	t := l.tickets[uid]
	if t == nil || t.state != Waiting || (t.priority == priority && t.maxWait == maxWait) {
		return
	}
	defer l.changedLocked()
	l.replaceLocked(t, func() { t.priority, t.maxWait = priority, maxWait })
	l.admitLocked(now)
}

// Advance ends the starts and waits whose time is over, admits those that may start by
// now, and says when it wants to be called next; the zero time: not before something else
// happens.
func (l *Limiter) Advance(now time.Time) (next time.Time) {
	now = l.lock(now)
	defer l.mu.Unlock()
	l.endTimedOutLocked(now)
	l.admitLocked(now)
	return l.wakeAtLocked(now)
}

// Freeze has no ticket admitted in its turn until Thaw, whatever is free: those that are to
// come may be before those that are here. Exempt tickets and deadlines of the gate pass.
func (l *Limiter) Freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// Thaw ends what Freeze began, and admits those whose turn it is.
func (l *Limiter) Thaw(now time.Time) {
	now = l.lock(now)
	defer l.unlock()
	l.frozen = false
	l.admitLocked(now)
}

func (l *Limiter) joinLocked(now time.Time, r Request) *Ticket {
	l.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, seq: l.seq, flow: l.flowLocked(r.Flow),
		priority: r.Priority, arrived: earlier(now, r.Arrived), maxWait: r.MaxWait,
		repeats: max(0, r.Repeats), state: Waiting, seen: now, decided: make(chan struct{}),
	}
	t.due = l.dueLocked(t)
	l.tickets[r.UID] = t
	if r.Groups != nil {
		l.enterLocked(r.UID, r.Groups)
	} else if p := l.podLocked(r.UID); p != nil {
		l.linkLocked(p)
	}
	l.queue.insert(t)
	t.flow.tickets++
	l.askedLocked(now, t)
	l.happenedLocked(Event{State: Waiting, Time: now}, t)
	return t
}

// replaceLocked changes what the place of a Waiting ticket depends on.
func (l *Limiter) replaceLocked(t *Ticket, change func()) {
	l.queue.remove(t)
	change()
	t.due = l.dueLocked(t)
	l.queue.insert(t)
}

// lock begins a decision, and gives its time: now, but never before that of an earlier one.
// Two callers may read the clock in one order and get the lock in the other.
func (l *Limiter) lock(now time.Time) time.Time {
	l.mu.Lock()
	l.latest = later(l.latest, now)
	return l.latest
}

// unlock ends a decision by which anything may have changed.
func (l *Limiter) unlock() {
	l.changedLocked()
	l.mu.Unlock()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier gives at where that is before now, else now (at may be zero). The result is on
// the clock of now: times of which only some have a monotonic reading have no order when
// the wall clock is set.
func earlier(now, at time.Time) time.Time {
	if at.IsZero() || !at.Before(now) {
		return now
	}
	return now.Add(at.Sub(now))
}
