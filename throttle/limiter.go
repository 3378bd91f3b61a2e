package throttle

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// backWithin is how long after it was asked for, a ticket may soon have a waiter: kubelet
// comes back to what was refused within 15 seconds.
const backWithin = 30 * time.Second

// Limiter is the queue, the slots and the limits of one node. Make one with New.
// All methods are safe for concurrent use and never block.
type Limiter struct {
	mu sync.Mutex
	// mu guards all below, and the tickets.
	latest    time.Time // the time of the latest decision
	settings  *Settings // with defaults
	log       *eventLog
	queue     *queue
	groups    *groups
	slots     *slots
	limits    *limits
	book      *book
	admission *admission
}

// New gives a limiter with the settings s, no ticket, and a full token bucket.
func New(now time.Time, s Settings) *Limiter {
	l := &Limiter{settings: &Settings{}, log: &eventLog{changed: make(chan struct{}, 1)}, groups: &groups{pods: map[string]*pod{}}}
	l.queue = &queue{settings: l.settings, groups: l.groups, flows: map[string]*flow{}}
	l.slots = &slots{settings: l.settings}
	l.limits = &limits{settings: l.settings}
	l.book = &book{settings: l.settings, queue: l.queue, groups: l.groups, slots: l.slots, log: l.log}
	l.admission = &admission{settings: l.settings, queue: l.queue, slots: l.slots, limits: l.limits, book: l.book}
	l.Configure(now, s)
	return l
}

// Configure replaces the settings. Tickets, slots, tokens, loans and debts are kept: with
// a lower limit, the starts under way go on, and no other is admitted until their number
// is below it.
func (l *Limiter) Configure(now time.Time, s Settings) {
	now = l.lock(now)
	defer l.settle(now)
	*l.settings = s.WithDefaults()
	l.queue.stale = true
	l.slots.configure()
	l.limits.configure(now)
}

// Join gives the ticket of the pod: the one it has while that is Waiting or Starting,
// else a new one at its place in the queue. A Waiting ticket moves to the place of an
// earlier arrival.
func (l *Limiter) Join(now time.Time, r Request) *Ticket {
	now = l.lock(now)
	defer l.mu.Unlock()
	t := l.book.live(r.UID)
	if t == nil {
		return l.book.join(l, now, r)
	}
	l.askedLocked(now, t)
	if arrived := earlier(now, r.Arrived); t.state == Waiting && arrived.Before(t.arrived) {
		l.queue.move(t, func() { t.arrived = arrived })
		l.log.change()
	}
	return t
}

// Adopt is Join for a start that is under way since a time; zero, or one to come: now. It
// holds a slot at once, over the limit where reality is, and takes no token. A ticket that is
// Starting stays as it is.
func (l *Limiter) Adopt(now time.Time, r Request, since time.Time) *Ticket {
	now = l.lock(now)
	defer l.settle(now)
	t := l.book.live(r.UID)
	if t == nil {
		t = l.book.join(l, now, r)
	}
	if t.state == Waiting {
		l.book.start(earlier(now, since), t, reasons.Adopted, true)
	}
	return t
}

// askedLocked notes that the ticket was asked for: its pod is not away.
func (l *Limiter) askedLocked(now time.Time, t *Ticket) {
	if now.Sub(t.seen) >= backWithin {
		l.log.change() // Busy may tell of it
	}
	t.seen = now
}

// Lookup gives the latest ticket of the pod, also one that ended if it is among the last
// 256 that did, or nil.
func (l *Limiter) Lookup(uid string) *Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.groups.ticket(uid)
}

// SetPriority moves a Waiting ticket to the place that the priority gives it, and
// replaces its Request.MaxWait. A pod without such a ticket is no error.
func (l *Limiter) SetPriority(now time.Time, uid string, priority int32, maxWait time.Duration) {
	now = l.lock(now)
	defer l.settle(now)
	if t := l.groups.ticket(uid); t != nil && t.state == Waiting {
		l.queue.move(t, func() { t.priority, t.maxWait = priority, maxWait })
	}
}

// SetStalled says that the Starting pod has made no progress since a time, or, with the
// zero time, that it does or that nobody can tell.
func (l *Limiter) SetStalled(now time.Time, uid string, since time.Time) {
	now = l.lock(now)
	defer l.settle(now)
	t := l.groups.ticket(uid)
	if t == nil || t.state != Starting || t.stalled.Equal(since) {
		return
	}
	t.stalled, l.groups.counted = since, false
	if since.IsZero() {
		l.slots.repay()
		t.pod.repay()
		return
	}
	t.stalled = later(t.admitted, earlier(now, since))
}

// SetPolicies replaces the limits of all policies, by the policy's name, and the groups of
// the pods that are given, in one step. A policy that is absent bounds nothing. The limiter
// keeps what it is given: it must not be changed afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits, pods ...PodGroups) {
	now = l.lock(now)
	defer l.settle(now)
	l.groups.setPolicies(limits)
	for _, pod := range pods {
		l.groups.set(pod)
	}
}

// SetGroups says which groups a pod is in, and replaces those it had. A pod that runs counts
// once, however often it starts anew, and no bound of Running holds it. Nothing is kept of one
// that neither runs nor has a ticket.
func (l *Limiter) SetGroups(now time.Time, pod PodGroups) {
	now = l.lock(now)
	defer l.settle(now)
	l.groups.set(pod)
}

// Finished says that a pod runs no longer and will not: it succeeded, failed for good or
// is gone. Until then it counts among those that run from its admission on.
func (l *Limiter) Finished(now time.Time, uid string) {
	now = l.lock(now)
	defer l.settle(now)
	if p := l.groups.pods[uid]; p != nil {
		p.running, p.ready = false, false
		l.groups.changed(p)
	}
}

// SetClaims says how many pods of the group may start at a time, where its policy has
// GroupLimits.Claims, now or later. Below zero: any number, for nobody can say. The group
// is remembered, without pods too, until it is said to have none.
func (l *Limiter) SetClaims(now time.Time, key GroupKey, starts int) {
	now = l.lock(now)
	defer l.settle(now)
	l.groups.group(key).claims, l.groups.counted = max(-1, starts), false
}

// Expect replaces what is known of the starts of pods, by their UIDs, and admits those that may
// start by that. A pod without a ticket is no error; one of which the same was known costs nothing.
func (l *Limiter) Expect(now time.Time, of map[string]Expected) {
	now = l.lock(now)
	changed := false
	for uid, e := range of {
		if t := l.groups.ticket(uid); t != nil && !t.foreseen.is(e) {
			t.foreseen, changed = e, true
		}
	}
	if !changed { // kubelet tells of each pod often, and to decide among thousands takes a millisecond
		l.mu.Unlock()
		return
	}
	l.slots.planned = false
	l.settle(now)
}

// SetUse says what a start that is under way has used. A pod without a ticket is no error.
func (l *Limiter) SetUse(uid string, use adaptive.Use) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.groups.ticket(uid); t != nil {
		if l.slots.adaptive != nil {
			l.slots.adaptive.Spend(use.CPU - t.use.CPU)
		}
		t.use = use
	}
}

// Observe takes what the sensors measured by now, lets the adaptive limit follow it, and
// admits those that may start by that.
func (l *Limiter) Observe(now time.Time, s Signals) {
	now = l.lock(now)
	defer l.settle(now)
	l.limits.signals = s
	if l.slots.adaptive != nil {
		l.slots.adaptive.Observe(l.admission.sample(now))
		l.admission.plan(now)
	}
}

// Busy tells whether anything starts, and whether anybody waits whom no group holds and who
// has a waiter or may soon have one. waiting may become true whenever [Limiter.Changed] tells
// of something; it becomes false by itself.
func (l *Limiter) Busy(now time.Time) (starting, waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	could := l.queue.couldStart(func(t *Ticket) bool { return t.waits() || now.Sub(t.seen) < backWithin })
	return len(l.slots.inFlight) > 0, could > 0
}

// Advance ends the starts and waits whose time is over, admits those that may start by
// now, and says when it wants to be called next; the zero time: not before something else
// happens.
func (l *Limiter) Advance(now time.Time) (next time.Time) {
	now = l.lock(now)
	defer l.mu.Unlock()
	l.book.endTimedOut(now)
	l.admission.admit(now)
	return l.admission.wakeAt(now)
}

// SetFrozen begins or ends a time in which no ticket is admitted in its turn: those that are
// to come may be before those that are here. Exempt tickets and deadlines of the gate pass.
func (l *Limiter) SetFrozen(now time.Time, frozen bool) {
	now = l.lock(now)
	defer l.settle(now)
	l.admission.frozen = frozen
}

// Changed gives a channel, of one value, that gets one after anything happened or the time
// that Advance asked for may have changed.
func (l *Limiter) Changed() <-chan struct{} { return l.log.changed }

// Drain gives what happened since the last call, in order. lost is the number of
// events that were dropped, the oldest first, because nobody drained them.
func (l *Limiter) Drain() (events []Event, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, lost = l.log.events, l.log.dropped
	l.log.events, l.log.dropped = nil, 0
	return events, lost
}

// lock begins a decision, and gives its time: now, but never before that of an earlier one.
// Two callers may read the clock in one order and get the lock in the other.
func (l *Limiter) lock(now time.Time) time.Time {
	l.mu.Lock()
	l.latest = later(l.latest, now)
	return l.latest
}

// settle ends a change that lock began: it admits those that may start by now, and has Changed
// tell of it.
func (l *Limiter) settle(now time.Time) {
	l.admission.admit(now)
	l.log.change()
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
