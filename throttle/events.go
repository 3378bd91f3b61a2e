package throttle

import "time"

// maxEvents bounds the events that nobody has drained yet.
const maxEvents = 10_000

// Kind is what happened to a ticket.
type Kind string

// The kinds of events.
const (
	KindJoined   Kind = "Joined"   // it joined the queue
	KindAdmitted Kind = "Admitted" // it was admitted; Took is how long it waited
	KindExpired  Kind = "Expired"  // a wait for it ended without a decision
	KindEnded    Kind = "Ended"    // it ended; Took is how long it held its slot
)

// Event is one thing that happened to a ticket. Events are a record: to change
// one changes nothing.
type Event struct {
	Kind   Kind
	Time   time.Time
	Ticket *Ticket
	Reason Reason
	// Took is in the sense of Kind; zero where that has none, and for a ticket that
	// ended while it waited.
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
