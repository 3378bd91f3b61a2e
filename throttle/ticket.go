package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// leastMaxWait is the least that a pod's own MaxWait counts as: it is no way past the queue.
const leastMaxWait = 30 * time.Second

// State is where a ticket stands in the life of a start.
type State string

// The states of a ticket.
const (
	Waiting  State = "Waiting"
	Starting State = "Starting"
	Started  State = "Started"
	Gone     State = "Gone"
)

// Request describes a start that joins the queue.
type Request struct {
	// UID is the key of the start: the pod's UID as the runtime knows it.
	UID string
	// Name is the pod for people, "namespace/name". The limiter only passes it on.
	Name string
	// Flow is the pods with which this one shares its turns, its namespace: flows of the same
	// priority take turns.
	Flow string
	// Priority is the pod's priority; the higher goes first.
	Priority int32
	// Arrived is when the pod joined the queue, where that was before now. Zero: now.
	Arrived time.Time
	// Repeats is how often a container of this pod exited and starts again in its sandbox.
	Repeats int
	// MaxWait bounds the wait of this pod where it is less than Settings.MaxWait; less than
	// 30 seconds counts as 30. Zero or less: it does not.
	MaxWait time.Duration
	// Groups are the groups of policies that the pod belongs to; [Limiter.SetGroups]
	// replaces them. They count where Join makes a new ticket; nil: those it has.
	Groups []Membership
	// Expected is what is known of the start; [Limiter.Expect] replaces it.
	Expected Expected
}

// Expected is what is known of a start before it begins. The adaptive limit goes by it, and that on cores by Cost. The
// zero value: nothing.
type Expected struct {
	// Kind is the same of starts that are expected to take the same.
	Kind string
	// Cost is what such a start takes; nil: nobody knows. It must not be changed afterwards.
	Cost *costs.Cost
	// Patience is how long after its admission a probe kills a start that is not over; zero: none does.
	Patience time.Duration
}

func (e Expected) is(other Expected) bool {
	if e.Cost == nil || other.Cost == nil {
		return e == other
	}
	cost, another := *e.Cost, *other.Cost
	e.Cost, other.Cost = nil, nil
	return e == other && cost == another
}

// Ticket is the place of one start in the queue, and then its slot. It ends exactly once. All
// methods are safe for concurrent use and never block.
type Ticket struct {
	l *Limiter

	uid, name string
	seq       uint64
	repeats   int
	flow      *flow
	decided   chan struct{}

	// Guarded by l.mu.
	priority  int32
	arrived   time.Time
	maxWait   time.Duration
	key       int64 // in the order of the queue: band, round, arrival
	pod       *pod
	state     State
	reason    reasons.Reason // of the admission, later of the end
	admission reasons.Reason // why it was admitted; kept after the end
	waiters   int            // processes that wait for it
	seen      time.Time      // when it was last asked for; unused while a process waits
	// reserved: it may wait near its turn. Whether it may or was refused, a process is expected
	// until expectedBy.
	reserved   bool
	expectedBy time.Time
	pullsSince time.Time // since when it has a place to pull images; zero: it has none
	pulled     bool      // it has been at a container of its sandbox
	admitted   time.Time
	stalled    time.Time // since when it makes no progress; zero: it does
	ended      time.Time
	slot       bool // it is counted among the starts at a time
	foreseen   Expected
	use        adaptive.Use // since it was admitted
}

// UID gives the key of the start.
func (t *Ticket) UID() string { return t.uid }

// Name gives the name of the pod as it joined.
func (t *Ticket) Name() string { return t.name }

// Decided gives a channel that is closed when the ticket is no longer Waiting.
func (t *Ticket) Decided() <-chan struct{} { return t.decided }

// Status gives the state of the ticket and the reason that led to it; the reason of a
// Waiting ticket is empty ([Ticket.TryStart] says what it waits for).
func (t *Ticket) Status() (State, reasons.Reason) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.state, t.reason
}

// Decision is the answer to a request for a start. The zero value refuses.
type Decision struct {
	// Admitted: the start may go on.
	Admitted bool
	// Reason is why it may, or why it has to wait.
	Reason reasons.Reason
	// Held is the limit that holds it back.
	Held Held
	// Ahead is the number of waiting tickets that go before it, without those that another
	// group holds.
	Ahead int
}

// Held says which limit holds a start back, and by what measure. The zero value: none does.
type Held struct {
	// Reason is the limit.
	Reason reasons.Reason
	// Signal is which signal, of CPULoad, IOLoad, LoadAverage and Pressure.
	Signal Signal
	// Measured and Threshold are in the unit of the limit: starts at a time for
	// Concurrency, seconds until the next start and seconds per start for Rate,
	// pods for Queued, GateRoom and Pulling, else that of the signal.
	Measured, Threshold float64
	// Owed is the part of Measured that starts owe which the signal was not measured
	// after; of CPULoad, IOLoad and LoadAverage.
	Owed float64
	// Policy is the group whose limit holds it; of PolicyStarting, PolicyRunning,
	// PolicyPacer, PolicyClaim and Unadmittable. Measured is in use then, of Threshold.
	Policy GroupKey
	// Resource is what that limit bounds; empty: pods. Measured, Threshold and Asks are
	// in its unit.
	Resource string
	// Asks is how much more the pod would use; of a resource only.
	Asks float64
	// Until is when the limit will allow one more start by itself; zero: nobody knows.
	Until time.Time
}

func (h Held) none() bool { return h.Reason == "" }

// answer is the decision on a ticket that is no longer Waiting.
func (t *Ticket) answer() Decision { return Decision{Admitted: t.state != Gone, Reason: t.reason} }

// due gives when the ticket has waited for as long as it may.
func (t *Ticket) due() time.Time {
	most := t.l.settings.MaxWait
	if t.maxWait > 0 {
		most = min(most, max(t.maxWait, leastMaxWait))
	}
	return t.arrived.Add(most)
}

// waits tells whether a process waits for the ticket.
func (t *Ticket) waits() bool { return t.waiters > 0 }

// expected tells whether a waiter will be there within seconds.
func (t *Ticket) expected(now time.Time) bool { return t.waits() || now.Before(t.expectedBy) }

// near tells whether the ticket has a waiter, or a reservation for one.
func (t *Ticket) near(now time.Time) bool {
	return t.waits() || (t.reserved && now.Before(t.expectedBy))
}

// Reserve asks, before the images of the pod are pulled, whether the pod may come to wait
// near its turn, where it can wait for waitable at most. It takes no slot, but a place among
// those that pull images until a process waits for the ticket. A ticket that is not Waiting is
// answered as by TryStart.
func (t *Ticket) Reserve(now time.Time, waitable time.Duration) Decision {
	l := t.l
	now = l.lock(now)
	defer l.mu.Unlock()
	if t.state != Waiting {
		return t.answer()
	}
	l.askedLocked(now, t)
	d := l.admission.reserve(now, t, waitable)
	t.reserved, t.expectedBy = d.Admitted, now.Add(returnsWithin)
	if !d.Admitted {
		t.pullsSince = time.Time{}
		return d
	}
	t.expectedBy = now.Add(arrivalGrace)
	if !t.pulled && t.pullsSince.IsZero() {
		t.pullsSince = now
	}
	return d
}

// Unreserve gives a reservation back: the pod's sandbox is gone.
func (t *Ticket) Unreserve() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.reserved {
		t.reserved, t.expectedBy = false, time.Time{}
	}
	t.pulled, t.pullsSince = false, time.Time{}
}

// KeepAlive says that the pod still means to start: its sandbox is there, and its images
// are being pulled. A ticket that nothing asks for is abandoned after ten minutes.
func (t *Ticket) KeepAlive(now time.Time) {
	defer t.l.mu.Unlock()
	t.seen = t.l.lock(now)
}

// TryStart asks for a slot on behalf of a process that cannot wait. A refusal takes
// nothing. A ticket that is Starting or Started is admitted, one that is Gone is not: the
// caller joins anew. The reason is that of Status then.
func (t *Ticket) TryStart(now time.Time) Decision {
	now = t.l.lock(now)
	defer t.l.mu.Unlock()
	t.cameLocked(now)
	return t.l.admission.try(now, t, false)
}

// StartExempt admits the ticket at once: with a slot that is not lent if every limit allows
// it, else without one. In both cases it owes to the signals what every start does. Nothing
// happens to a ticket that is not Waiting.
func (t *Ticket) StartExempt(now time.Time) {
	l := t.l
	now = l.lock(now)
	defer l.settle(now)
	l.admission.admit(now)
	if t.state != Waiting {
		return
	}
	l.slots.follow(t)
	free := l.admission.held(now).none() && l.slots.hasOwn()
	if free {
		l.limits.take(now)
	} else {
		l.limits.debts.add(now)
	}
	l.book.start(now, t, reasons.Exempt, free)
}

// Wait says that from now on a process waits for the ticket, which starts as soon as it
// is decided; StopWaiting takes it back. Calls may nest, and may come after the ticket was
// decided.
func (t *Ticket) Wait(now time.Time) {
	now = t.l.lock(now)
	defer t.l.settle(now)
	t.waiters++
	t.cameLocked(now)
}

// StopWaiting ends one Wait; without one it does nothing.
func (t *Ticket) StopWaiting(now time.Time) {
	now = t.l.lock(now)
	defer t.l.settle(now) // what it kept for itself may be free
	t.seen = now
	if t.waiters == 0 {
		return
	}
	t.waiters--
	if !t.waits() && (!t.reserved || !now.Before(t.expectedBy)) {
		t.reserved, t.expectedBy = false, now.Add(returnsWithin)
	}
}

// DeadlineReached is called when the process that waits can wait no longer: the ticket is
// admitted as if its MaxWait were over, or refused with GateExpired, and keeps its place. One
// that is not Waiting is answered as by TryStart.
func (t *Ticket) DeadlineReached(now time.Time) Decision {
	now = t.l.lock(now)
	defer t.l.settle(now)
	t.cameLocked(now)
	d := t.l.admission.try(now, t, true)
	if t.state == Waiting {
		d.Reason = reasons.GateExpired
		t.l.book.happened(Event{State: Waiting, Time: now, Reason: reasons.GateExpired}, t)
	}
	return d
}

// cameLocked notes that a process is there that could start now: its images are there, too.
func (t *Ticket) cameLocked(now time.Time) {
	t.l.askedLocked(now, t)
	t.l.slots.planned = false
	t.pulled, t.pullsSince = true, time.Time{}
}

// End ends the start for a reason: a Waiting ticket is Gone; a Starting one gives its
// slot back, and is Started or Gone as the reason says. Nothing happens to a ticket that
// has ended.
func (t *Ticket) End(now time.Time, reason reasons.Reason) {
	now = t.l.lock(now)
	defer t.l.settle(now)
	t.l.book.end(now, t, reason)
}
