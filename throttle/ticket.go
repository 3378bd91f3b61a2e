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
	// MaxWait bounds the wait of this pod. Zero or less: Settings.MaxWait.
	MaxWait time.Duration
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
	priority  int32
	arrived   time.Time
	maxWait   time.Duration
	state     State
	reason    Reason    // of the admission, later of the end
	admission Reason    // why it was admitted; kept after the end
	attended  int       // how many stand there for it
	seen      time.Time // when it was last asked for; unused while somebody stands there
	letUp     time.Time // when it was let up; zero: it was not
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
	// Ahead is the number of waiting tickets that go before it.
	Ahead int
}

// LetUp asks, before the images of the pod are pulled, whether the pod may come
// up to wait near its turn, where one can wait for waitable at most. It takes no
// slot. A ticket that is no longer Waiting is always let up.
func (t *Ticket) LetUp(now time.Time, waitable time.Duration) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	t.seen = now
	d := l.letUpLocked(now, t, waitable)
	if d.Admitted {
		t.letUp = now
	} else {
		t.letUp = time.Time{}
	}
	return d
}

// Expect says that somebody will still come for the ticket: its sandbox is there,
// and its images are being pulled. A ticket that nobody expects for ten minutes is
// abandoned.
func (t *Ticket) Expect(now time.Time) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if now.After(t.seen) {
		t.seen = now
	}
}

// LetDown takes back that the ticket was let up: its sandbox is gone. It keeps
// its place.
func (t *Ticket) LetDown() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.letUp = time.Time{}
}

// TryStart asks for a slot on behalf of somebody who stands there now and cannot
// wait. A refusal takes nothing.
func (t *Ticket) TryStart(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	t.arriveLocked()
	l.admitLocked(now)
	t.departLocked(now)
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	return l.refusalLocked(now, t)
}

// StartExempt admits the ticket at once: with a slot if every limit allows it,
// else without one. Somebody who waits is not passed over: while anybody does,
// there is no free slot.
func (t *Ticket) StartExempt(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	if t.state != Waiting {
		return
	}
	l.admitLocked(now)
	if t.state != Waiting {
		return
	}
	_, free := l.checkLocked(now)
	if free {
		l.takeLocked(now)
	}
	l.startLocked(now, t, Exempt, free)
}

// Attend says that from now on somebody stands there who starts the process as
// soon as the ticket is decided; Leave takes it back. Calls may nest.
func (t *Ticket) Attend(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	t.arriveLocked()
	l.admitLocked(now)
}

// Leave ends one Attend.
func (t *Ticket) Leave(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	t.departLocked(now)
}

// Expire is called when the one who stands there can wait no longer: the ticket
// is admitted over the limit if no other start is above it, else refused with
// GateExpired, and keeps its place.
func (t *Ticket) Expire(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	t.arriveLocked()
	l.admitLocked(now)
	t.departLocked(now)
	if t.state == Waiting && l.mayPassLimitLocked() {
		l.passLimitLocked(now, t, GateDeadline)
	}
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	d := l.refusalLocked(now, t)
	d.Reason = GateExpired
	l.happenedLocked(Event{Kind: KindExpired, Time: now, Reason: GateExpired}, t)
	return d
}

// End ends the start for a reason: a Waiting ticket is Gone; a Starting one
// gives its slot back, and is Started or Gone as the reason says. Nothing
// happens to a ticket that has ended.
func (t *Ticket) End(now time.Time, reason Reason) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	l.endLocked(now, t, reason)
	l.admitLocked(now)
}

func (t *Ticket) arriveLocked() {
	t.attended++
	if t.state == Waiting {
		t.l.presentLocked(t)
	}
}

func (t *Ticket) departLocked(now time.Time) {
	t.attended = max(0, t.attended-1)
	t.seen = now
	if t.attended == 0 {
		t.l.present.remove(t)
	}
}
