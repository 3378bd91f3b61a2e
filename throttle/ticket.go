package throttle

import "time"

// Request describes a start that joins the queue.
type Request struct {
	// UID is the key of the start: the pod's UID as the runtime knows it.
	UID string
	// Name is the pod for people, "namespace/name". The limiter only passes it on.
	Name string
	// Flow is the pods with which this one shares its turns: its namespace. Pods of the
	// same priority that wait in different flows take turns.
	Flow string
	// Priority is the pod's priority; the higher goes first.
	Priority int32
	// Arrived is when the pod joined the queue, where that was before now (the daemon was
	// restarted while the pod waited). Zero: now.
	Arrived time.Time
	// Repeats is how often a container of this pod exited and starts again in the same
	// sandbox. Of the same priority, a first start (zero) goes before it.
	Repeats int
	// MaxWait bounds the wait of this pod where it is less than Settings.MaxWait; less than
	// 30 seconds counts as 30. Zero or less: it does not.
	MaxWait time.Duration
	// Groups are the groups of policies that the pod belongs to; [Limiter.SetGroups]
	// replaces them. They count where Join makes a new ticket; nil: those it has.
	Groups []Membership
}

// Ticket is the place of one start in the queue, and then its slot. It is made by
// [Limiter.Join] and is ended exactly once; to end it again does nothing. All methods are
// safe for concurrent use and never block.
type Ticket struct {
	l *Limiter

	uid, name string
	seq       uint64
	repeats   int
	flow      *flow
	decided   chan struct{}

	// Guarded by l.mu.
	priority  int32
	arrived   time.Time
	maxWait   time.Duration
	due       time.Time // when maxWait is over
	round     int       // in the order of the queue
	pod       *pod      // what it counts for in groups; nil: in none
	state     State
	reason    Reason    // of the admission, later of the end
	admission Reason    // why it was admitted; kept after the end
	waiters   int       // processes that wait for it
	seen      time.Time // when it was last asked for; unused while a process waits
	// reserved: it may wait near its turn. Like any refused pod it is expected until
	// expectedBy.
	reserved   bool
	expectedBy time.Time
	pullsSince time.Time // since when it has a place to pull images; zero: it has none
	pulled     bool      // it has been at a container of its sandbox
	admitted   time.Time
	stalled    time.Time // since when it makes no progress; zero: it does
	ended      time.Time
	slot       bool // it is counted among the starts at a time
}

// UID gives the key of the start.
func (t *Ticket) UID() string { return t.uid }

// Name gives the name of the pod as it joined.
func (t *Ticket) Name() string { return t.name }

// Decided gives a channel that is closed when the ticket is no longer Waiting.
func (t *Ticket) Decided() <-chan struct{} { return t.decided }

// Status gives the state of the ticket and the reason that led to it; the reason of a
// Waiting ticket is empty ([Ticket.TryStart] says what it waits for).
func (t *Ticket) Status() (State, Reason) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.state, t.reason
}

// Decision is the answer to a request for a start. The zero value refuses.
type Decision struct {
	// Admitted: the start may go on.
	Admitted bool
	// Reason is why it may, or why it has to wait.
	Reason Reason
	// Held is the limit that holds it back.
	Held Held
	// Ahead is the number of waiting tickets that go before it, without those that a group
	// holds which does not hold this one.
	Ahead int
}

func (t *Ticket) hasEnded() bool { return t.state == Started || t.state == Gone }

// answer is the decision on a ticket that is no longer Waiting. One that is Gone may not
// start: it holds no slot.
func (t *Ticket) answer() Decision { return Decision{Admitted: t.state != Gone, Reason: t.reason} }

// expected tells whether a waiter will be there within seconds.
func (t *Ticket) expected(now time.Time) bool { return t.waiters > 0 || now.Before(t.expectedBy) }

// near tells whether the ticket has a waiter, or a reservation for one.
func (t *Ticket) near(now time.Time) bool {
	return t.waiters > 0 || (t.reserved && now.Before(t.expectedBy))
}
