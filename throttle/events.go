package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Event is a change of a ticket.
type Event struct {
	// State is the state of the ticket after the event. Waiting: the ticket joined the queue, or, if
	// Reason is GateExpired, a process stopped waiting for it without a decision.
	State  State
	Time   time.Time
	Ticket *Ticket
	// Reason is why the ticket changed; empty if it joined.
	Reason reasons.Reason
	// Admission is why the ticket was admitted; empty if it was not.
	Admission reasons.Reason
	// Took is how long the ticket waited, if State is Starting. If the ticket ended, it is how long
	// it was Starting. Else it is zero.
	Took time.Duration
	// Waiting and Starting are how many tickets were so after the event. Starting counts only
	// tickets with a slot.
	Waiting, Starting int
}
