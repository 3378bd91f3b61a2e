package throttle

import (
	"reflect"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// backWithin is how long a ticket that was asked for may soon have a waiter. kubelet retries what was
// refused within 15 seconds.
const backWithin = 30 * time.Second

// Limiter is the queue, the slots and the limits of one node. Make one with New. It is not safe for concurrent use: its
// owner has a lock, and holds it for each call of a method of the Limiter or of a Ticket. No method blocks.
type Limiter struct {
	latest    time.Time // of the times that callers have passed
	settings  *Settings // with defaults
	queue     *queue
	groups    *groups
	slots     *slots
	limits    *limits
	tickets   *tickets
	admission *admission
}

// New returns a limiter with the settings s, no ticket, and a full token bucket.
func New(now time.Time, s Settings) *Limiter {
	l := &Limiter{settings: &Settings{}, groups: &groups{pods: map[string]*pod{}}}
	l.queue = &queue{settings: l.settings, groups: l.groups, flows: map[string]*flow{}}
	l.slots = &slots{settings: l.settings}
	l.limits = &limits{settings: l.settings}
	l.tickets = &tickets{settings: l.settings, queue: l.queue, groups: l.groups, slots: l.slots}
	l.admission = &admission{settings: l.settings, queue: l.queue, slots: l.slots, limits: l.limits, tickets: l.tickets}
	l.Configure(now, s)
	return l
}

// Configure replaces the settings. Tickets, slots, tokens, loans and debts are kept. If a limit is
// lower than before, the starts under way continue, and none is admitted until fewer are under way
// than it allows.
func (l *Limiter) Configure(now time.Time, s Settings) {
	now = l.at(now)
	*l.settings = s.WithDefaults()
	l.queue.stale = true
	l.slots.configure()
	l.limits.configure(now)
	l.admission.plan(now)
	l.admit(now)
}

// Join returns the ticket of the pod if that is Waiting or Starting, else a new one in the queue. If
// r.Arrived is earlier than the arrival of a Waiting ticket, the ticket moves forward.
func (l *Limiter) Join(now time.Time, r Request) *Ticket {
	now = l.at(now)
	t := l.tickets.live(r.UID)
	if t == nil {
		if !slices.ContainsFunc(l.slots.inFlight, (*Ticket).paced) && l.queue.couldStart(1, func(t *Ticket) bool { return !t.preparation.fails }) == 0 {
			l.slots.took.begin(now)
		}
		return l.tickets.join(l, now, r)
	}
	l.tickets.saw(now, t)
	if arrived := notAfter(now, r.Arrived); t.state == Waiting && arrived.Before(t.arrived) {
		l.queue.move(t, func() { t.arrived = arrived })
		l.tickets.notify()
	}
	return t
}

// Adopt joins a start that is under way already, since the given time; zero or a later time means now.
// The start gets a slot at once, over the limit if need be, and takes no token. A ticket that is
// Starting stays as it is.
func (l *Limiter) Adopt(now time.Time, r Request, since time.Time) *Ticket {
	now = l.at(now)
	defer l.admit(now)
	t := l.tickets.live(r.UID)
	if t == nil {
		t = l.tickets.join(l, now, r)
	}
	if t.state == Waiting {
		l.tickets.start(notAfter(now, since), t, reasons.Adopted, true)
	}
	return t
}

// StartAnyway admits the Waiting ticket of the pod at once and with a slot, whatever the limits and the queue say, for a
// reason. It does nothing, and returns false, if the pod has no such ticket.
func (l *Limiter) StartAnyway(now time.Time, uid string, reason reasons.Reason) bool {
	now = l.at(now)
	defer l.admit(now)
	t := l.groups.ticket(uid)
	if t == nil || t.state != Waiting {
		return false
	}
	l.limits.take(now)
	l.tickets.start(now, t, reason, true)
	return true
}

// Lookup returns the latest ticket of the pod, or nil. Of the tickets that have ended, it finds the
// last 256.
func (l *Limiter) Lookup(uid string) *Ticket {
	return l.groups.ticket(uid)
}

// Waiting and Starting return the tickets that wait, and those that start, in no order that callers could rely on. The
// caller must not change the result, and must not use it after it has released the lock.
func (l *Limiter) Waiting() []*Ticket { return l.queue.arrivals }

// Starting is documented at Waiting.
func (l *Limiter) Starting() []*Ticket { return l.slots.inFlight }

// Settings returns the settings in force, with defaults.
func (l *Limiter) Settings() Settings { return *l.settings }

// SetPolicies replaces the limits of all policies, by the policy's name, and the groups of the given
// pods, in one step. A policy that is absent limits nothing. The caller must not change the arguments afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits, pods ...PodGroups) {
	now = l.at(now)
	l.groups.setPolicies(limits)
	for _, pod := range pods {
		l.groups.setGroups(pod)
	}
	l.admit(now)
}

// SetGroups replaces the groups of a pod. A pod that runs counts once, however often it starts again, and no bound of
// Running holds it. The limiter drops the groups of a pod that neither waits, starts nor runs.
func (l *Limiter) SetGroups(now time.Time, pod PodGroups) {
	now = l.at(now)
	if l.groups.setGroups(pod) {
		l.admit(now)
	}
}

// Finished notes that a pod no longer runs: it succeeded, failed for good or is gone. A pod counts as running from its
// admission until then, and is kept for as long: the caller must report the end of each pod.
func (l *Limiter) Finished(now time.Time, uid string) { l.setRunning(now, uid, false) }

// NotReady notes that no container of a pod runs. If the pod counts as running, it still does, but not as ready.
func (l *Limiter) NotReady(now time.Time, uid string) { l.setRunning(now, uid, true) }

// setRunning notes that a pod is not ready, and perhaps does not run. A pod that does not run stays so.
func (l *Limiter) setRunning(now time.Time, uid string, running bool) {
	now = l.at(now)
	p := l.groups.pods[uid]
	if p == nil || !p.ready && (running || !p.running) {
		return
	}
	p.running, p.ready = p.running && running, false
	l.groups.changed(p)
	l.admit(now)
}

// SetClaims sets how many pods of the group may start at a time. It counts while the policy of the
// group has GroupLimits.Claims. Below zero means any number: the claims are not known. A group with
// claims is kept even if it has no pods.
func (l *Limiter) SetClaims(now time.Time, key GroupKey, starts int) {
	now = l.at(now)
	l.groups.group(key).claims, l.groups.counted = max(-1, starts), false
	l.admit(now)
}

// SetProfiles replaces Request.Profile of pods, by their UIDs, and admits the pods that may start because
// of that. It ignores pods without a ticket.
func (l *Limiter) SetProfiles(now time.Time, profiles map[string]Profile) {
	changed := false
	for uid, p := range profiles {
		if t := l.groups.ticket(uid); t != nil && !reflect.DeepEqual(t.profile, p) {
			t.profile, l.slots.planned, changed = p, false, true
		}
	}
	if changed { // pods are reported often, and a decision among thousands takes a millisecond
		l.admit(l.at(now))
	}
}

// Observe replaces the readings of the sensors, adjusts the adaptive limit, and admits the pods that
// may start because of that.
func (l *Limiter) Observe(now time.Time, s Signals) {
	now = l.at(now)
	l.limits.observe(now, s)
	if l.slots.adaptive != nil {
		l.slots.adaptive.Observe(l.admission.sample(now))
		l.admission.plan(now)
	}
	l.admit(now)
}

// Busy reports whether a pod starts, and whether a pod waits. It counts a waiting pod that no group
// holds, that kubelet can make, and that has a waiter or was asked for in the last 30 seconds. When
// waiting becomes true, [Limiter.Changed] reports a change; when it becomes false, it may report none.
func (l *Limiter) Busy(now time.Time) (starting, waiting bool) {
	could := l.queue.couldStart(1, func(t *Ticket) bool {
		return !t.preparation.fails && t.AskedFor(now)
	})
	return len(l.slots.inFlight) > 0, could > 0
}

// Together makes one change of all changes until decide is called: until then they admit no pod.
func (l *Limiter) Together(now time.Time) (decide func()) {
	l.admission.together = true
	return func() {
		l.admission.together = false
		l.admit(l.at(now))
	}
}

// Advance ends the starts and waits whose time is over, and admits the pods that may start by now. It
// returns when to call it next, or zero if there is nothing to do before [Limiter.Changed] reports a change.
func (l *Limiter) Advance(now time.Time) (next time.Time) {
	now = l.at(now)
	l.tickets.endTimedOut(now)
	l.admission.admit(now)
	return l.admission.wakeAt(now)
}

// SetFrozen freezes the queue or releases it. While it is frozen, no ticket is admitted in its turn or because its
// MaxWait is over: pods that have yet to join may go before those that have. Exempt pods and adopted starts may still
// start.
func (l *Limiter) SetFrozen(now time.Time, frozen bool) {
	now = l.at(now)
	l.admission.frozen = frozen
	l.admit(now)
}

// Changed reports whether since its last call there was an event, or the time that Advance returned may have become
// earlier. Then the owner must call Advance and Drain soon.
func (l *Limiter) Changed() bool {
	changed := l.tickets.changed
	l.tickets.changed = false
	return changed
}

// Drain returns the events since the last call, in order. The Limiter keeps all events until then, so
// its owner must call Drain again and again.
func (l *Limiter) Drain() []Event {
	events := l.tickets.events
	l.tickets.events = nil
	return events
}

// at returns the time of a call: now, but never before the time of an earlier call. Two callers may read the clock in one
// order and get their lock in the other.
func (l *Limiter) at(now time.Time) time.Time {
	l.latest = later(l.latest, now)
	return l.latest
}

// admit ends a change: it admits the pods that may start by now.
func (l *Limiter) admit(now time.Time) {
	l.admission.admit(now)
	l.tickets.notify()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// notAfter returns at, or now if at is after now or zero. The result has the monotonic reading of now: after the wall
// clock was set, a time without that reading cannot be compared with one that has it.
func notAfter(now, at time.Time) time.Time {
	if at.IsZero() || !at.Before(now) {
		return now
	}
	return now.Add(at.Sub(now))
}
