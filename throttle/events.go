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

// eventLog keeps what happened until it is drained, and says that anything did.
type eventLog struct {
	events  []Event
	dropped uint64 // events that nobody drained
	changed chan struct{}
}

func (l *eventLog) add(e Event) {
	if len(l.events) >= maxEvents {
		l.events = l.events[1:]
		l.dropped++
	}
	l.events = append(l.events, e)
	l.change()
}

// change says that anything happened, or may be due at another time.
func (l *eventLog) change() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}
