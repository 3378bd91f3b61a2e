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

// book joins, starts and ends the tickets, and records an event for each of these.
type book struct {
	settings *Settings
	queue    *queue
	groups   *groups
	slots    *slots
	events   []Event       // since the last Drain
	changed  chan struct{} // holds at most one value
	ended    []*Ticket     // in the order of their ends, at most endedKept
	seq      uint64        // number of the ticket that joined last
}

// live returns the ticket of the pod if it is Waiting or Starting, else nil.
func (b *book) live(uid string) *Ticket {
	if t := b.groups.ticket(uid); t != nil && (t.state == Waiting || t.state == Starting) {
		return t
	}
	return nil
}

// join puts a new ticket into the queue.
func (b *book) join(l *Limiter, now time.Time, r Request) *Ticket {
	b.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, priority: r.Priority, arrived: earlier(now, r.Arrived), maxWait: r.MaxWait,
		repeats: max(0, r.Repeats), state: Waiting, seen: now, decided: make(chan struct{}),
		profile: r.Profile, seq: b.seq, flow: b.queue.joinFlow(r.Flow), pod: b.groups.pod(r.UID),
	}
	t.pod.ticket = t
	if r.Groups != nil {
		b.groups.setMemberships(t.pod, r.Groups)
	}
	b.groups.changed(t.pod)
	b.queue.insert(t)
	b.addEvent(Event{State: Waiting, Time: now}, t)
	return t
}

// start turns a Waiting ticket into a Starting one.
func (b *book) start(at time.Time, t *Ticket, reason reasons.Reason, slot bool) {
	b.queue.remove(t)
	t.state, t.reason, t.admission, t.admitted, t.slot = Starting, reason, reason, at, slot
	t.flow.load++
	b.slots.add(t)
	t.pod.running, t.pod.ready = true, false
	b.groups.changed(t.pod)
	close(t.decided)
	b.addEvent(Event{State: Starting, Time: at, Reason: reason, Took: max(0, at.Sub(t.arrived))}, t)
}

// end ends a ticket that is Waiting or Starting. Others it leaves as they are.
func (b *book) end(now time.Time, t *Ticket, reason reasons.Reason) {
	e := Event{State: Gone, Time: now, Reason: reason}
	switch t.state {
	case Waiting:
		b.queue.remove(t)
		b.queue.leaveFlow(t)
		close(t.decided)
	case Starting:
		e.State, e.Took = Started, max(0, now.Sub(t.admitted))
		b.slots.release(t, reason, e.Took)
		switch reason {
		case reasons.Deleted, reasons.Abandoned, reasons.SandboxGone:
			e.State = Gone
		case reasons.Ready, reasons.Settled, reasons.Inferred:
			t.pod.ready = true
		}
		if reason == reasons.Stuck {
			b.queue.stuck = append(b.queue.stuck, t)
		} else {
			b.queue.leaveFlow(t)
		}
	default:
		return
	}
	t.state, t.reason, t.ended = e.State, reason, now
	b.groups.changed(t.pod)
	b.remember(t)
	b.addEvent(e, t)
}

// endTimedOut ends the starts that take longer than StartTimeout, and abandons the tickets that nothing has asked
// for since abandonAfter.
func (b *book) endTimedOut(now time.Time) {
	for at := b.slots.inFlight; len(at) > 0 && now.Sub(at[0].admitted) >= b.settings.StartTimeout; at = b.slots.inFlight {
		b.end(now, at[0], reasons.Stuck)
	}
	for _, t := range slices.Clone(b.queue.arrivals) {
		if !t.waits() && now.Sub(t.seen) >= abandonAfter {
			b.end(now, t, reasons.Abandoned)
		}
	}
}

// remember keeps an ended ticket for Lookup, and forgets the oldest beyond endedKept.
func (b *book) remember(t *Ticket) {
	b.ended = append(b.ended, t)
	for len(b.ended) > endedKept {
		old := b.ended[0]
		b.ended = b.ended[1:]
		if old.pod.ticket == old {
			old.pod.ticket = nil
			b.groups.changed(old.pod)
		}
	}
}

func (b *book) addEvent(e Event, t *Ticket) {
	e.Ticket, e.Waiting, e.Starting = t, len(b.queue.arrivals), b.slots.taken()
	b.events = append(b.events, e)
	b.notify()
}

// notify puts a value into changed: there is an event, or Advance may be due at another time.
func (b *book) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}
