package throttle

import "time"

// Snapshot is what the limiter held at one moment. It is a copy.
type Snapshot struct {
	Settings Settings
	// Waiting are the Waiting tickets in the order of the queue.
	Waiting []TicketView
	// Starting are the tickets that hold a slot, in the order of their admission, then
	// those that start without one.
	Starting []TicketView
	// Held is the limit that holds the next start back; its Reason is empty when
	// none does.
	Held Held
	// Pace is the expected time between two admissions; zero where no limit is
	// set. PaceObserved is false while it is a guess.
	Pace         time.Duration
	PaceObserved bool
	// Limit is how many may start at a time now, without those lent; zero: any
	// number.
	Limit int
	// Lent is how many slots are lent beyond the limit.
	Lent int
	// Pulling is how many pods are between their sandbox and their first container.
	Pulling int
	// Signals are the last readings.
	Signals Signals
	// Adaptive says what the adaptive limit did last, and why; empty: it is off.
	Adaptive string
}

// Basis says what an estimate rests on.
type Basis string

// What an estimate rests on.
const (
	// BasisObserved: on starts that ended, or on a rate that is set.
	BasisObserved Basis = "observed"
	// BasisNone: on nothing yet; it is a guess.
	BasisNone Basis = "none yet"
	// BasisPolicy: a policy holds the ticket, and nobody knows for how long. Expected is
	// the time until its MaxWait is over, when a limit may be passed; zero where a bound of
	// those that run holds it, which no deadline passes.
	BasisPolicy Basis = "a policy holds it"
)

// TicketView is a copy of one ticket.
type TicketView struct {
	UID      string
	Name     string
	Priority int32
	State    State
	// Reason is why the ticket is in its state. Of a Waiting ticket, the limit
	// that holds it back, or Queued.
	Reason Reason
	// Admission is why it was admitted, also after its end; empty: it was not.
	Admission Reason
	// Held says what was measured against what; of Waiting tickets only.
	Held Held
	// Ahead is the number of Waiting tickets that go before it, as Decision has it.
	Ahead int
	// Present: somebody stands there who starts the process when it is admitted.
	Present bool
	// Slot: it counts among the starts at a time.
	Slot bool
	// Arrived, Admitted and Ended are when it joined, was admitted and ended;
	// zero: it was not, yet.
	Arrived, Admitted, Ended time.Time
	// Expected is the time until it is admitted, if the pace stays; of Waiting
	// tickets only. It counts every ticket ahead, present or not.
	Expected time.Duration
	// Basis is what Expected rests on; of Waiting tickets only.
	Basis Basis
	// Repeats is Request.Repeats.
	Repeats int
	// Groups are the groups of policies that it belongs to, in the order of their keys;
	// none after its end.
	Groups []GroupKey
	// StalledSince is since when a Starting ticket makes no progress; zero: it does,
	// or nobody can tell.
	StalledSince time.Time
}

// Snapshot gives a copy of all that is waiting and starting. It takes O(n).
func (l *Limiter) Snapshot(now time.Time) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = later(now, l.latest)
	pace := l.paceLocked(now)
	s := Snapshot{
		Settings: l.settings, Pace: pace.every, PaceObserved: pace.basis == BasisObserved,
		Limit: l.slots.most, Lent: l.slots.lent, Pulling: l.pulling.len(), Signals: l.signals,
	}
	if l.adaptive != nil {
		s.Adaptive = l.adaptive.Why()
	}
	s.Held, _ = l.checkLocked(now)
	for _, at := range l.queueLocked() {
		s.Waiting = append(s.Waiting, l.viewLocked(now, at.ticket, at.ahead))
	}
	for _, set := range []*order{&l.starting, &l.unheld} {
		for t := range set.all() {
			s.Starting = append(s.Starting, l.viewLocked(now, t, 0))
		}
	}
	return s
}

// View gives a copy of the latest ticket of the pod; false where there is none.
func (l *Limiter) View(now time.Time, uid string) (TicketView, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tickets[uid]
	if t == nil {
		return TicketView{}, false
	}
	return l.viewLocked(now, t, l.aheadOfLocked(t)), true
}

// Named gives a copy of the ticket of the pod with this name: of several, the
// one that joined last. False where there is none. It takes O(n).
func (l *Limiter) Named(now time.Time, name string) (TicketView, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last *Ticket
	for _, t := range l.tickets {
		if t.name == name && (last == nil || t.seq > last.seq) {
			last = t
		}
	}
	if last == nil {
		return TicketView{}, false
	}
	return l.viewLocked(now, last, l.aheadOfLocked(last)), true
}

// Recent gives copies of the tickets that ended last, the latest at the end.
func (l *Limiter) Recent(now time.Time) []TicketView {
	l.mu.Lock()
	defer l.mu.Unlock()
	views := make([]TicketView, 0, len(l.ended))
	for _, t := range l.ended {
		views = append(views, l.viewLocked(now, t, 0))
	}
	return views
}

// viewLocked copies a ticket before which so many Waiting ones go.
func (l *Limiter) viewLocked(now time.Time, t *Ticket, ahead int) TicketView {
	v := TicketView{
		UID: t.uid, Name: t.name, Priority: t.priority, State: t.state, Reason: t.reason, Admission: t.admission,
		Present: t.attended > 0, Slot: t.slot && t.state == Starting,
		Arrived: t.arrived, Admitted: t.admitted, Ended: t.ended,
		Repeats: t.repeats, StalledSince: t.stalled,
	}
	if t.state == Waiting {
		d := l.refusalLocked(later(now, l.latest), t, ahead)
		pace := l.paceLocked(later(now, l.latest))
		v.Reason, v.Held, v.Ahead = d.Reason, d.Held, d.Ahead
		v.Expected, v.Basis = pace.expected(ahead, d.Reason == Absent), pace.basis
		if d.Held.Policy != (GroupKey{}) {
			v.Expected, v.Basis = l.passesInLocked(later(now, l.latest), t), BasisPolicy
		}
	}
	if t.member != nil {
		for _, p := range t.member.parts {
			v.Groups = append(v.Groups, p.group.key)
		}
	}
	return v
}

// passesInLocked gives the time until the ticket may pass the limits; zero: it never may.
func (l *Limiter) passesInLocked(now time.Time, t *Ticket) time.Duration {
	if _, holds := t.runningHolds(); holds {
		return 0
	}
	return max(0, t.arrived.Add(l.maxWaitLocked(t)).Sub(now))
}

// Turn is when a waiting ticket should go on if nobody decides for it any more.
type Turn struct {
	Ticket *Ticket
	// Position counts from 1 among the Of that are present.
	Position, Of int
	// Pace is the expected time between two turns; the same for all.
	Pace time.Duration
}

// maxTurns bounds what Turns gives, and so what it costs.
const maxTurns = 1_000

// Turns gives the turns of those that are present, in the order of the queue, and
// those that a policy holds after all others: of the first thousand, and without
// policies it takes as long as there are turns.
func (l *Limiter) Turns(now time.Time) []Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	pace := l.paceLocked(later(now, l.latest))
	of := l.presentLocked()
	turns := make([]Turn, 0, min(of, maxTurns))
	for t := range l.inTurnLocked() {
		if len(turns) == maxTurns {
			break
		}
		turns = append(turns, Turn{Ticket: t, Position: len(turns) + 1, Of: of, Pace: pace.every})
	}
	return turns
}
