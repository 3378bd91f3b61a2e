package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// leastMaxWait is the least that Request.MaxWait counts as, so that pods cannot use it to pass the queue.
const leastMaxWait = 30 * time.Second

// State is the state of a ticket.
type State string

// The states of a ticket, in their order. A ticket ends as Started or Gone.
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
	// Name is the pod's name for people, "namespace/name". The limiter does not interpret it.
	Name string
	// Flow is the pod's namespace. The flow with the fewest starts under way has the next start.
	Flow string
	// Priority is the pod's priority. A higher one goes first in its flow, and among flows with equally many starts
	// under way.
	Priority int32
	// Arrived is when the pod began to wait, if that was before it joined. Zero means now.
	Arrived time.Time
	// Since is when the counted wait of the pod began. If that is later than Arrived, Arrived only sets the place in the
	// queue. Zero means Arrived.
	Since time.Time
	// Repeats is how often a container of this pod has exited and started again in its sandbox.
	Repeats int
	// MaxWait limits the wait of this pod if it is less than Settings.MaxWait. Less than 30 seconds counts as 30. If it is
	// zero or less, only Settings.MaxWait counts.
	MaxWait time.Duration
	// Groups are the pod's groups. They count only if Join makes a new ticket; nil keeps the groups
	// that the pod has. [Limiter.SetGroups] replaces them.
	Groups []Membership
	// Profile is what is known of the start. [Limiter.SetProfiles] replaces it.
	Profile Profile
}

// Profile is what is known of a start before it begins. The adaptive limit uses it, and the limit on
// cores uses Cost. In the zero value, nothing is known.
type Profile struct {
	// Kind identifies starts that are expected to take the same time, CPU and disk reads; it is empty if it is not known.
	Kind string
	// Cost is what the start is expected to take; nil if that is not known. The caller must not change
	// it afterwards.
	Cost *costs.Cost
	// Patience is how soon after its admission a probe may kill a start that is not over; zero if none
	// does.
	Patience time.Duration
}

// Ticket is a start: its position in the queue, and then its slot. It ends exactly once. A caller of its methods holds
// the lock that guards the Limiter, except for UID, Name, Repeats and Decided. No method blocks.
type Ticket struct {
	l *Limiter

	uid, name string
	seq       uint64
	repeats   int
	flow      *flow
	decided   chan struct{}

	// The fields above never change.
	priority  int32
	arrived   time.Time
	maxWait   time.Duration
	key       int64 // order in the queue: round, band, arrival
	passes    bool  // it starts first, by the plan
	pod       *pod
	state     State
	reason    reasons.Reason // of the admission, later of the end
	admission reasons.Reason // why it was admitted; kept after the end
	waiters   int            // processes that wait for it
	yields    bool           // it does not start before it is overdue, though a process waits
	seen      time.Time      // when it was last asked for; unused while a process waits
	// reserved reports whether it has a reservation. With or without one, a process is awaited until awaitedUntil.
	reserved     bool
	refusal      Refusal // what a refusal of it means
	awaitedUntil time.Time
	// promisedUntil is when a process with the latest reservation can wait no longer; zero if there was none.
	promisedUntil time.Time
	pullsSince    time.Time // when it got its pull permit; zero if it has none
	pulled        bool      // it has asked for a container, so its images are there
	lacksPermit   bool      // when it asked for a reservation last, only a pull permit was missing
	preparation   preparation
	admitted      time.Time
	stalledSince  time.Time // when it stopped making progress; zero if it makes progress
	ended         time.Time
	slot          bool // it holds a slot
	profile       Profile
	use           adaptive.Use // since it was admitted
}

// preparation is the work of kubelet between a pod's sandbox and its first container: it pulls images, and may fail to.
// It is no wait.
type preparation struct {
	since time.Time     // when it began; zero if it is not under way
	took  time.Duration // how long it took before
	fails bool          // kubelet cannot make the container now, maybe for days: the pod is before no other
}

func (p *preparation) end(now time.Time) {
	if !p.since.IsZero() {
		p.took, p.since, p.fails = p.took+max(0, now.Sub(p.since)), time.Time{}, false
	}
}

// delays returns when the wait of a pod that arrived at a time began to count.
func (p *preparation) delays(arrived time.Time) time.Time { return arrived.Add(p.took) }

// UID returns Request.UID.
func (t *Ticket) UID() string { return t.uid }

// Name returns Request.Name.
func (t *Ticket) Name() string { return t.name }

// Repeats returns Request.Repeats; less than 0 counts as 0.
func (t *Ticket) Repeats() int { return t.repeats }

// Decided returns a channel that is closed when the ticket is no longer Waiting.
func (t *Ticket) Decided() <-chan struct{} { return t.decided }

// Status returns the state of the ticket and the reason for it. The reason of a Waiting ticket is empty;
// [Ticket.TryStart] returns what it waits for. Both are empty for a nil ticket: the pod has none.
func (t *Ticket) Status() (State, reasons.Reason) {
	if t == nil {
		return "", ""
	}
	return t.state, t.reason
}

// Arrived returns when the pod began to wait, which may be before its ticket joined.
func (t *Ticket) Arrived() time.Time { return t.arrived }

// Admitted returns when the ticket was admitted, or zero if it was not.
func (t *Ticket) Admitted() time.Time { return t.admitted }

// Ended returns when the ticket ended, or zero if it has not.
func (t *Ticket) Ended() time.Time { return t.ended }

// Since returns when the counted wait of the pod began: when it arrived, or later by the time in which kubelet has
// prepared it until now.
func (t *Ticket) Since(now time.Time) time.Time {
	since := t.preparation.delays(t.arrived)
	if t.state == Waiting && !t.preparation.since.IsZero() {
		since = since.Add(t.l.at(now).Sub(t.preparation.since))
	}
	return since
}

// Lent reports whether the ticket holds a slot that was lent, while more slots are taken than there are without loans.
func (t *Ticket) Lent() bool {
	return t.slot && t.state == Starting && t.admission == reasons.SlotLent && t.l.slots.taken() > t.l.slots.limit
}

// Stalled reports whether the start makes no progress.
func (t *Ticket) Stalled() bool { return !t.stalledSince.IsZero() }

// SetPriority replaces Request.Priority and Request.MaxWait of a Waiting ticket, which moves in the queue. It does nothing
// if the ticket is nil or not Waiting.
func (t *Ticket) SetPriority(now time.Time, priority int32, maxWait time.Duration) {
	if t == nil || t.state != Waiting {
		return
	}
	t.l.queue.move(t, func() { t.priority, t.maxWait = priority, maxWait })
	t.l.admit(t.l.at(now))
}

// SetStalled sets when a Starting ticket stopped making progress; zero if it makes progress or that is not known. It does
// nothing if the ticket is nil or not Starting.
func (t *Ticket) SetStalled(now, since time.Time) {
	if t == nil || t.state != Starting || t.stalledSince.Equal(since) {
		return
	}
	now = t.l.at(now)
	defer t.l.admit(now)
	t.stalledSince = since
	t.l.groups.changed(t.pod)
	if since.IsZero() {
		t.l.slots.repay()
		t.pod.repay()
		return
	}
	t.stalledSince = later(t.admitted, notAfter(now, since))
}

// SetUse sets what a start has used since its admission. It does nothing if the ticket is nil.
func (t *Ticket) SetUse(use adaptive.Use) {
	if t == nil {
		return
	}
	if by := t.l.slots.adaptive; by != nil {
		by.Spend(use.CPU - t.use.CPU)
	}
	t.use = use
}

// Decision is the answer to a request for a slot or, from [Ticket.Reserve], for a reservation. The zero value refuses.
type Decision struct {
	// Granted reports whether the pod gets what was asked for: its start is admitted, or it may pull its images and enter
	// the gate.
	Granted bool
	// Reason is why it may, or why it must wait.
	Reason reasons.Reason
	// Held is the limit that holds it.
	Held Held
	// Ahead is the number of waiting tickets that go before it. It does not count tickets that another
	// group holds.
	Ahead int
}

// Held is the limit that holds a start, and what it compares. In the zero value, no limit holds the start.
type Held struct {
	// Reason names the limit.
	Reason reasons.Reason
	// Signal is the signal, for CPULoad, IOLoad, LoadAverage and Pressure.
	Signal Signal
	// Measured and Threshold are what is compared, in the unit of the limit: starts at a time for
	// Concurrency, seconds until the next start and seconds per start for Rate, pods for Queued,
	// GateFull and Pulling, and otherwise the unit of the signal.
	Measured, Threshold float64
	// Owed is the part of Measured that no sensor measured: what starts are taken to add to the
	// signal before it shows them. It is set for CPULoad, IOLoad and LoadAverage.
	Owed float64
	// Policy is the group whose limit holds it, for PolicyStarting, PolicyRunning, PolicyPacer,
	// PolicyClaim and Unadmittable. For these reasons Measured is in use, and Threshold is the limit.
	Policy GroupKey
	// Resource is what the group limits; it is empty for pods. Measured, Threshold and Asks are in its unit.
	Resource string
	// Asks is how much more of Resource the pod would use.
	Asks float64
	// NoneEnded reports, for GateFull, that no start has ended yet, so only free slots are promised.
	NoneEnded bool
	// For is what a Pause is for. It is set for StartAfter, whose Measured are the seconds until the Pause ends by itself,
	// and whose Threshold is the longest time of the Pause, in seconds.
	For string
	// Until is when the limit allows one more start by itself; zero if that is not known.
	Until time.Time
}

func (h Held) none() bool { return h.Reason == "" }

// answer returns the decision on a ticket that is no longer Waiting.
func (t *Ticket) answer() Decision { return Decision{Granted: t.state != Gone, Reason: t.reason} }

// due returns when the ticket has waited for MaxWait.
func (t *Ticket) due() time.Time {
	most := t.l.settings.MaxWait
	if t.maxWait > 0 {
		most = min(most, max(t.maxWait, leastMaxWait))
	}
	for _, in := range t.pod.in {
		if policy := in.group.limits.MaxWait; policy > 0 && !in.Bypass {
			most = min(most, policy)
		}
	}
	return t.preparation.delays(t.arrived).Add(most)
}

// waits reports whether a process waits for the ticket.
func (t *Ticket) waits() bool { return t.waiters > 0 }

// paced reports whether a start says something of pods that wait: not if it was exempt, or under way before it was known.
func (t *Ticket) paced() bool { return t.admission != reasons.Adopted && t.admission != reasons.Exempt }

// AskedFor reports whether a process waits for the ticket, or something has asked for it in the last 30 seconds.
func (t *Ticket) AskedFor(now time.Time) bool { return t.waits() || now.Sub(t.seen) < backWithin }

// mayStart reports whether a process waits for the ticket, and the ticket does not yield to others.
func mayStart(now time.Time, t *Ticket) bool { return t.waits() && (!t.yields || !now.Before(t.due())) }

// awaited reports whether the ticket has a waiter, or is to have one within seconds: kubelet will ask for it.
func (t *Ticket) awaited(now time.Time) bool { return t.waits() || now.Before(t.awaitedUntil) }

// occupies reports whether the ticket counts among those near their turn: it has a waiter, or a
// reservation.
func (t *Ticket) occupies(now time.Time) bool {
	return t.waits() || (t.reserved && now.Before(t.awaitedUntil))
}

// Refusal is what a refusal by [Ticket.Reserve] means for the pod.
type Refusal int

const (
	// RetriedSoon means that kubelet tries again within 15 seconds.
	RetriedSoon Refusal = iota
	// RetriedLate means that a refusal costs as much as a place in the gate that runs out: kubelet counts both as a crash
	// of the container, and tries again up to five minutes later. So the pod gets a place if its turn is expected in time.
	RetriedLate
	// WaitsOn means that nothing is refused: the process of the pod waits on where it is, and may ask again at any time.
	WaitsOn
)

// Reserve asks for a reservation: the right to pull images and then to wait in the gate, for at most waitable. A
// reservation takes no slot. It takes a pull permit until a process waits for the ticket. If the ticket is not Waiting,
// Reserve returns what TryStart returns.
func (t *Ticket) Reserve(now time.Time, waitable time.Duration, refusal Refusal) Decision {
	d := t.reserve(now, waitable, refusal)
	if !d.Granted && t.state == Waiting {
		d.Ahead = t.l.queue.position(t).ahead
	}
	return d
}

// ReserveRefused is Reserve for a ticket that TryStart has just refused. waitLeft is the time until the ticket is expected
// to be admitted, as in [TicketView]. It is set if there is a reservation.
func (t *Ticket) ReserveRefused(now time.Time, waitable time.Duration, refusal Refusal, refused Decision) (d Decision, waitLeft time.Duration) {
	d = t.reserve(now, waitable, refusal)
	if t.state != Waiting {
		return d, 0
	}
	if d.Granted {
		return d, t.waitLeft(t.l.at(now), refused.Held, refused.Held, refused.Ahead, t.l.admission.turns(now))
	}
	d.Ahead = refused.Ahead
	return d, 0
}

func (t *Ticket) reserve(now time.Time, waitable time.Duration, refusal Refusal) Decision {
	l := t.l
	now = l.at(now)
	if t.state != Waiting {
		return t.answer()
	}
	l.tickets.saw(now, t)
	t.refusal = refusal
	d := l.admission.reserve(now, t, waitable)
	t.reserved, t.awaitedUntil = d.Granted, now.Add(comesWithin)
	if !d.Granted {
		t.pullsSince, t.promisedUntil = time.Time{}, time.Time{}
		return d
	}
	t.awaitedUntil, t.promisedUntil = now.Add(comesWithin), now.Add(waitable)
	if !t.pulled && t.pullsSince.IsZero() {
		t.pullsSince = now
	}
	return d
}

// Prepare notes that the pod has a sandbox, so that kubelet pulls its images. Until the pod asks for a container, no
// limit holds it, and the time does not count as waiting. It has a pull permit then, even beyond the limit, so that no
// other pod gets one while too many pull. If pulls is false, kubelet cannot make the container: the pod
// gives back its reservation and its pull permit, and needs no permit until it has another sandbox; and no other pod
// counts it as ahead. Prepare does nothing if the ticket is not Waiting, or if its pod has asked for a container.
func (t *Ticket) Prepare(now time.Time, pulls bool) {
	now = t.l.at(now)
	if t.state != Waiting || t.pulled {
		return
	}
	if t.preparation.since.IsZero() {
		t.preparation.since = now
	}
	switch t.preparation.fails = !pulls; {
	case !pulls:
		t.reserved, t.awaitedUntil, t.pullsSince = false, time.Time{}, time.Time{}
	case t.pullsSince.IsZero():
		t.pullsSince = now
	}
}

// Unreserve notes that the pod's sandbox is gone. It gives back the reservation and the pull
// permit. Both are asked for again with the next sandbox.
func (t *Ticket) Unreserve(now time.Time) {
	now = t.l.at(now)
	t.l.tickets.prepared(now, t)
	if t.reserved {
		t.reserved, t.awaitedUntil = false, time.Time{}
	}
	t.pulled, t.pullsSince = false, time.Time{}
}

// KeepAlive notes that the pod still means to start: its sandbox exists, and its images are being
// pulled. A ticket that nothing asks for is abandoned after ten minutes.
func (t *Ticket) KeepAlive(now time.Time) { t.seen = t.l.at(now) }

// TryStart asks for a slot for a process that cannot wait. A refusal takes nothing. If the ticket is no
// longer Waiting, the result has the reason of Status, and is admitted unless the ticket is Gone: then
// the caller must join again.
func (t *Ticket) TryStart(now time.Time) Decision {
	now = t.l.at(now)
	t.processArrived(now)
	return t.l.admission.try(now, t)
}

// StartExempt admits the ticket at once: with a slot if every limit allows it without a loan, else without a slot. In
// both cases, the start owes its increment to the signals. StartExempt does nothing, and returns false, if the ticket
// is not Waiting.
func (t *Ticket) StartExempt(now time.Time) bool {
	l := t.l
	now = l.at(now)
	defer l.admit(now)
	l.admission.admit(now)
	if t.state != Waiting {
		return false
	}
	l.slots.follow(t)
	free := l.slots.hasUnlent() && l.limits.held(now).none()
	if free {
		l.limits.take(now)
	} else {
		l.limits.debts.add(now)
	}
	l.tickets.start(now, t, reasons.Exempt, free)
	return true
}

// Wait notes that from now on a process waits for the ticket, and starts when it is admitted. It does
// not block: see Decided. StopWaiting ends it. Calls may nest, and may come after the decision.
func (t *Ticket) Wait(now time.Time) {
	now = t.l.at(now)
	t.waiters++
	t.processArrived(now)
	t.l.admit(now)
}

// StopWaiting ends one Wait. Without one it does nothing.
func (t *Ticket) StopWaiting(now time.Time) {
	now = t.l.at(now)
	defer t.l.admit(now) // what it reserved may be free
	t.seen = now
	if t.waiters == 0 {
		return
	}
	t.waiters--
	t.yields = t.yields && t.waits()
	if !t.waits() && (!t.reserved || !now.Before(t.awaitedUntil)) {
		t.reserved, t.awaitedUntil = false, now.Add(comesWithin)
	}
}

// Yield sets whether the ticket lets others start before it though a process waits for it, as long as it is not overdue:
// before it is a pod whose process cannot come yet. This ends when no process waits for the ticket any more.
func (t *Ticket) Yield(now time.Time, yields bool) {
	now = t.l.at(now)
	t.yields = yields && t.waits()
	t.l.slots.planned = false
	t.l.admit(now)
}

// DeadlineReached is TryStart for a process that can wait no longer. If a limit holds the ticket, the reason is
// GateExpired, and there is an event. The ticket keeps its position in the queue.
func (t *Ticket) DeadlineReached(now time.Time) Decision {
	now = t.l.at(now)
	defer t.l.admit(now)
	t.processArrived(now)
	d := t.l.admission.try(now, t)
	if t.state == Waiting {
		d.Reason = reasons.GateExpired
		t.l.tickets.addEvent(Event{State: Waiting, Time: now, Reason: reasons.GateExpired}, t)
	}
	return d
}

// processArrived notes that a process could start now, so its images are pulled.
func (t *Ticket) processArrived(now time.Time) {
	t.l.tickets.saw(now, t)
	t.l.slots.planned = false
	t.pulled, t.pullsSince = true, time.Time{}
	t.l.tickets.prepared(now, t)
}
