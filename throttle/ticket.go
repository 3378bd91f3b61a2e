package throttle

import "time"

// Request describes a start that joins the queue.
type Request struct {
	// UID is the key of the start: the pod's UID as the runtime knows it.
	UID string
	// Name is the pod for people, "namespace/name". The limiter only passes it on.
	Name string
	// Priority is the pod's priority; the higher goes first.
	Priority int32
	// Arrived is when the pod joined the queue, where that was before now (the
	// daemon was restarted while the pod waited). Zero: now.
	Arrived time.Time
	// Repeats is how often a container of this pod exited and starts again in the
	// same sandbox. Of the same priority, a first start (zero) goes before it.
	Repeats int
	// MaxWait bounds the wait of this pod where it is less than Settings.MaxWait. Zero
	// or less: it does not.
	MaxWait time.Duration
	// Groups are the groups of policies that the pod belongs to; [Limiter.SetGroups]
	// replaces them. They count where Join makes a new ticket.
	Groups []Membership
}

// Ticket is the place of one start in the queue, and then its slot. It is made
// by [Limiter.Join] and is ended exactly once; to end it again does nothing. All
// methods are safe for concurrent use and never block.
type Ticket struct {
	l *Limiter

	uid, name string
	seq       uint64
	repeats   int

	// Guarded by l.mu.
	knots     [places]knot
	class     *class  // of a Waiting ticket: whose queue it is in
	holds     []hold  // in the order of class.groups
	member    *member // what it counts for in groups; nil: in none
	priority  int32
	arrived   time.Time
	maxWait   time.Duration
	due       time.Time // when maxWait is over; while it is present
	state     State
	reason    Reason    // of the admission, later of the end
	admission Reason    // why it was admitted; kept after the end
	attended  int       // how many stand there for it
	seen      time.Time // when it was last asked for; unused while somebody stands there
	asked     time.Time // seen, as the order of those absent knows it
	letUp     bool      // it may come up to wait near its turn
	comes     time.Time // by when somebody will stand there; zero: nobody knows
	pulls     time.Time // since when it has a place to pull images
	pulled    bool      // it has stood at a container of its sandbox
	admitted  time.Time
	stalled   time.Time // since when it makes no progress; zero: it does
	ended     time.Time
	slot      bool // it is counted among the starting

	decided chan struct{}
}

// UID gives the key of the start.
func (t *Ticket) UID() string { return t.uid }

// Name gives the name of the pod as it joined.
func (t *Ticket) Name() string { return t.name }

// Decided gives a channel that is closed when the ticket is no longer Waiting.
func (t *Ticket) Decided() <-chan struct{} { return t.decided }

// Status gives the state of the ticket and the reason that led to it; the reason
// of a Waiting ticket is empty ([Ticket.TryStart] says what it waits for).
func (t *Ticket) Status() (State, Reason) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.state, t.reason
}

// Decision is the answer to one who asks for a start. The zero value refuses.
type Decision struct {
	// Admitted: the start may go on.
	Admitted bool
	// Reason is why it may, or why it has to wait.
	Reason Reason
	// Held is the limit that holds it back.
	Held Held
	// Ahead is the number of waiting tickets that go before it. Of those that a policy
	// holds which does not hold this one, only as many count as it lets start now.
	Ahead int
}

func (t *Ticket) hasEnded() bool { return t.state == Started || t.state == Gone }
