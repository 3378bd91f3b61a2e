package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// abandonAfter is how long a ticket without a waiter is kept. kubelet retries a refused
	// sandbox or container within 15 seconds, and a container that failed to start within 5
	// minutes, its longest back-off.
	abandonAfter = 10 * time.Minute
	// endedKept is how many ended tickets are remembered for [Limiter.Lookup].
	endedKept = 256
)

// tickets joins, starts and ends the tickets, and records an event for each of these.
type tickets struct {
	settings *Settings
	queue    *queue
	groups   *groups
	slots    *slots
	events   []Event   // since the last Drain
	changed  bool      // see Limiter.Changed
	ended    []*Ticket // in the order of their ends, at most endedKept
	seq      uint64    // number of the ticket that joined last
}

// live returns the ticket of the pod if it is Waiting or Starting, else nil.
func (a *tickets) live(uid string) *Ticket {
	if t := a.groups.ticket(uid); t != nil && (t.state == Waiting || t.state == Starting) {
		return t
	}
	return nil
}

// join puts a new ticket into the queue.
func (a *tickets) join(l *Limiter, now time.Time, r Request) *Ticket {
	a.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, priority: r.Priority, arrived: notAfter(now, r.Arrived), maxWait: r.MaxWait,
		repeats: max(0, r.Repeats), state: Waiting, seen: now, decided: make(chan struct{}),
		profile: r.Profile, seq: a.seq, flow: a.queue.joinFlow(r.Flow), pod: a.groups.pod(r.UID),
	}
	t.preparation.took = max(0, r.Since.Sub(t.arrived))
	t.pod.ticket = t
	if r.Groups != nil {
		a.groups.setMemberships(t.pod, r.Groups)
	}
	a.groups.changed(t.pod)
	a.queue.insert(t)
	a.addEvent(Event{State: Waiting, Time: now}, t)
	return t
}

// saw notes that something has asked for the ticket, so its pod still means to start.
func (a *tickets) saw(now time.Time, t *Ticket) {
	if now.Sub(t.seen) >= backWithin {
		a.notify() // the result of Busy may change
	}
	t.seen = now
}

// prepared notes that kubelet does not prepare the pod at present.
func (a *tickets) prepared(now time.Time, t *Ticket) {
	if t.preparation.fails {
		a.notify() // the result of Busy may change
	}
	t.preparation.end(now)
}

// start turns a Waiting ticket into a Starting one.
func (a *tickets) start(at time.Time, t *Ticket, reason reasons.Reason, slot bool) {
	a.queue.remove(t)
	t.preparation.end(at)
	t.state, t.reason, t.admission, t.admitted, t.slot = Starting, reason, reason, at, slot
	t.flow.load++
	a.slots.add(t)
	t.pod.running, t.pod.ready = true, false
	a.groups.changed(t.pod)
	close(t.decided)
	a.addEvent(Event{State: Starting, Time: at, Reason: reason, Took: max(0, at.Sub(t.preparation.delays(t.arrived)))}, t)
}

// End ends the ticket for a reason. A Waiting ticket becomes Gone. A Starting one gives its slot back,
// and becomes Gone if the reason is Deleted, Abandoned, SandboxGone or NotMade, else Started. It does nothing if
// the ticket has ended.
func (t *Ticket) End(now time.Time, reason reasons.Reason) {
	now = t.l.at(now)
	t.l.tickets.end(now, t, reason)
	t.l.admit(now)
}

// end ends a ticket that is Waiting or Starting. Others it leaves as they are.
func (a *tickets) end(now time.Time, t *Ticket, reason reasons.Reason) {
	e := Event{State: Gone, Time: now, Reason: reason}
	switch t.state {
	case Waiting:
		a.queue.remove(t)
		a.queue.leaveFlow(t)
		close(t.decided)
	case Starting:
		e.State, e.Took = Started, max(0, now.Sub(t.admitted))
		a.slots.release(t, reason, e.Took)
		switch reason {
		case reasons.Deleted, reasons.Abandoned, reasons.SandboxGone, reasons.NotMade:
			e.State = Gone
		case reasons.Ready, reasons.Settled, reasons.Inferred:
			t.pod.ready = true
			t.pod.gotReady(now)
			if t.slot {
				a.slots.loan.gotReady(now)
			}
		}
		if reason == reasons.Lapsed {
			a.slots.goOn(now)
			a.groups.counted = false
		}
		if reason == reasons.Stuck {
			a.queue.stuck = append(a.queue.stuck, t)
		} else {
			a.queue.leaveFlow(t)
		}
	default:
		return
	}
	t.state, t.reason, t.ended = e.State, reason, now
	a.groups.changed(t.pod)
	a.remember(t)
	a.addEvent(e, t)
}

// endTimedOut ends the starts that take longer than StartTimeout, and abandons the tickets that nothing has asked
// for since abandonAfter.
func (a *tickets) endTimedOut(now time.Time) {
	for at := a.slots.inFlight; len(at) > 0 && now.Sub(at[0].admitted) >= a.settings.StartTimeout; at = a.slots.inFlight {
		a.end(now, at[0], reasons.Stuck)
	}
	for _, t := range slices.Clone(a.queue.arrivals) {
		if !t.waits() && now.Sub(t.seen) >= abandonAfter {
			a.end(now, t, reasons.Abandoned)
		}
	}
}

// remember keeps an ended ticket for Lookup, and forgets the oldest beyond endedKept.
func (a *tickets) remember(t *Ticket) {
	a.ended = append(a.ended, t)
	for len(a.ended) > endedKept {
		old := a.ended[0]
		a.ended = a.ended[1:]
		if old.pod.ticket == old {
			old.pod.ticket = nil
			a.groups.changed(old.pod)
		}
	}
}

func (a *tickets) addEvent(e Event, t *Ticket) {
	e.Ticket, e.Admission, e.Waiting, e.Starting = t, t.admission, len(a.queue.arrivals), a.slots.taken()
	a.events = append(a.events, e)
	a.notify()
}

// notify notes that there is an event, or that Advance may be due at another time.
func (a *tickets) notify() { a.changed = true }
