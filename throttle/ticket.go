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
	knots     [places]knot
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
	// Ahead is the number of waiting tickets that go before it.
	Ahead int
}

// LetUp asks, before the images of the pod are pulled, whether the pod may come
// up to wait near its turn, where one can wait for waitable at most. It takes no
// slot, but a place among those that pull images, until somebody stands at a
// container or the ticket is let down. A ticket that is no longer Waiting is always
// let up.
func (t *Ticket) LetUp(now time.Time, waitable time.Duration) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	t.seen = now
	d := l.letUpLocked(now, t, waitable)
	if d.Admitted {
		l.pullLocked(now, t)
		l.comesLocked(t, true, now.Add(arrivalGrace))
	} else {
		l.pulling.remove(t)
		l.comesLocked(t, false, now.Add(returnsWithin))
	}
	return d
}

// Expect says that somebody will still come for the ticket: its sandbox is there,
// and its images are being pulled. A ticket that nobody expects for ten minutes is
// abandoned.
func (t *Ticket) Expect(now time.Time) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.seen = t.l.clockLocked(now)
}

// LetDown takes back that the ticket was let up: its sandbox is gone. It keeps
// its place in the queue.
func (t *Ticket) LetDown() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.letDownLocked(t)
	t.pulled = false
}

// TryStart asks for a slot on behalf of somebody who stands there now and cannot
// wait. A refusal takes nothing.
func (t *Ticket) TryStart(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if t.state == Waiting {
		l.pulledLocked(t)
		l.tryLocked(now, t)
	}
	t.seen = now
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	return l.refusalLocked(now, t, l.waiting.rank(t))
}

// tryLocked admits whoever may start now, with t among those present.
func (l *Limiter) tryLocked(now time.Time, t *Ticket) {
	if !l.mayAdmitLocked(now, t) {
		return
	}
	defer l.changedLocked()
	first := l.present.first()
	if first == nil || before(t, first) < 0 {
		if _, ok := l.checkLocked(now); ok {
			l.admitFirstLocked(now, t)
		}
	}
	l.arriveLocked(t)
	l.admitLocked(now)
	l.departLocked(now, t)
}

// StartExempt admits the ticket at once: with a slot if every limit allows it,
// else without one. Somebody who waits is not passed over: while anybody does,
// there is no free slot. It takes none that was lent.
func (t *Ticket) StartExempt(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	if t.state != Waiting {
		return
	}
	l.admitLocked(now)
	if t.state != Waiting {
		return
	}
	_, free := l.checkLocked(now)
	if l.slots.most > 0 && l.starting.len() >= l.slots.most {
		free = false
	}
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
	now = l.clockLocked(now)
	l.arriveLocked(t)
	l.admitLocked(now)
}

// Leave ends one Attend.
func (t *Ticket) Leave(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	l.departLocked(l.clockLocked(now), t)
}

// Expire is called when the one who stands there can wait no longer: the ticket
// is admitted over the limit if no other start is above it, else refused with
// GateExpired, and keeps its place.
func (t *Ticket) Expire(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.arriveLocked(t)
	l.admitLocked(now)
	l.departLocked(now, t)
	if t.state == Waiting && l.mayPassLimitLocked() {
		l.passLimitLocked(now, t, GateDeadline)
	}
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	d := l.refusalLocked(now, t, l.waiting.rank(t))
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
	now = l.clockLocked(now)
	l.endLocked(now, t, reason)
	l.admitLocked(now)
}

func (t *Ticket) hasEnded() bool { return t.state == Started || t.state == Gone }
