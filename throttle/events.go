package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// maxEvents bounds the events that nobody has drained yet.
const maxEvents = 10_000

// Event is one thing that happened to a ticket.
type Event struct {
	// State is that of the ticket from then on. Waiting: it joined the queue, or, with the
	// reason GateExpired, a process stopped waiting for it without a decision.
	State  State
	Time   time.Time
	Ticket *Ticket
	// Reason is why; empty where it joined.
	Reason reasons.Reason
	// Took is how long a ticket that is Starting waited, and how long one that was Starting
	// did; else zero.
	Took time.Duration
	// Waiting and Starting are how many there were after it happened; starts
	// without a slot are not counted.
	Waiting, Starting int
}

// Changed gives a channel that gets a value after anything happened or the time
// that Advance asked for may have changed. It holds one value at most.
func (l *Limiter) Changed() <-chan struct{} { return l.changed }

// Drain gives what happened since the last call, in order. lost is the number of
// events that were dropped, the oldest first, because nobody drained them.
func (l *Limiter) Drain() (events []Event, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, lost = l.events, l.dropped
	l.events, l.dropped = nil, 0
	return events, lost
}

func (l *Limiter) happenedLocked(e Event, t *Ticket) {
	e.Ticket, e.Waiting, e.Starting = t, len(l.queue.arrivals), l.slotsLocked()
	if len(l.events) >= maxEvents {
		l.events = l.events[1:]
		l.dropped++
	}
	l.events = append(l.events, e)
	l.changedLocked()
}

func (l *Limiter) changedLocked() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}
