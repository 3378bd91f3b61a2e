package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// abandonAfter is how long a ticket without a waiter is kept. kubelet retries a refused
	// sandbox or container within 15 seconds, and a container that failed to start within its
	// back-off of 5 minutes at most.
	abandonAfter = 10 * time.Minute
	// endedKept is how many ended tickets are remembered for [Limiter.Lookup].
	endedKept = 256
)

// book has the tickets, and leads each through the life of its start.
type book struct {
	settings *Settings
	queue    *queue
	groups   *groups
	slots    *slots
	log      *eventLog
	ended    []*Ticket // in the order of their ends, at most endedKept
	seq      uint64    // of the last that joined
}

// live gives the ticket of the pod that has not ended, or nil.
func (b *book) live(uid string) *Ticket {
	if t := b.groups.ticket(uid); t != nil && (t.state == Waiting || t.state == Starting) {
		return t
	}
	return nil
}

// join puts a new ticket of l into the queue.
func (b *book) join(l *Limiter, now time.Time, r Request) *Ticket {
	b.seq++
	t := &Ticket{
		l: l, uid: r.UID, name: r.Name, priority: r.Priority, arrived: earlier(now, r.Arrived), maxWait: r.MaxWait,
		repeats: max(0, r.Repeats), state: Waiting, seen: now, decided: make(chan struct{}),
		foreseen: r.Expected, seq: b.seq, flow: b.queue.enter(r.Flow), pod: b.groups.pod(r.UID),
	}
	t.pod.ticket = t
	if r.Groups != nil {
		b.groups.enter(t.pod, r.Groups)
	}
	b.groups.changed(t.pod)
	b.queue.insert(t)
	b.happened(Event{State: Waiting, Time: now}, t)
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
	b.happened(Event{State: Starting, Time: at, Reason: reason, Took: max(0, at.Sub(t.arrived))}, t)
}

// end ends a ticket once.
func (b *book) end(now time.Time, t *Ticket, reason reasons.Reason) {
	e := Event{State: Gone, Time: now, Reason: reason}
	started := t.state == Starting
	switch {
	case started:
		e.Took = max(0, now.Sub(t.admitted))
		if !gone(reason) {
			e.State = Started
		}
		b.slots.giveBack(t, reason, e.Took)
	case t.state == Waiting:
		b.queue.remove(t)
		close(t.decided)
	default:
		return
	}
	t.state, t.reason, t.ended = e.State, reason, now
	if started && reason == reasons.Stuck {
		b.queue.stuck = append(b.queue.stuck, t)
	} else {
		b.queue.leave(t)
	}
	t.pod.ready = t.pod.ready || started && tellsReady(reason)
	b.groups.changed(t.pod)
	b.remember(t)
	b.happened(e, t)
}

// endTimedOut ends the starts that take too long, and the waits for which nothing came back.
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

// remember keeps the ended ticket, and forgets the oldest beyond the bound.
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

func (b *book) happened(e Event, t *Ticket) {
	e.Ticket, e.Waiting, e.Starting = t, len(b.queue.arrivals), b.slots.taken()
	b.log.add(e)
}

// tellsPace tells whether a start that ended so says how long starts take.
func tellsPace(r reasons.Reason) bool { return tellsReady(r) || r == reasons.Completed }

// tellsReady tells whether a start that ended so has made its pod ready.
func tellsReady(r reasons.Reason) bool {
	return r == reasons.Ready || r == reasons.Settled || r == reasons.Inferred
}

// breaksOff tells whether its containers ended a start that ended so.
func breaksOff(r reasons.Reason) bool {
	return r == reasons.Exited || r == reasons.CrashLoop || r == reasons.Failed
}

// gone tells whether a start that ended so was deleted or given up.
func gone(r reasons.Reason) bool {
	return r == reasons.Deleted || r == reasons.Abandoned || r == reasons.SandboxGone
}
