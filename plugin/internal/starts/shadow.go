package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// shadow is a start that went on at once in the mode Shadow, while its ticket
// waits and then holds a slot as the start itself would have with Enforce. The
// slot is held for as long as the start really took.
type shadow struct {
	ticket *throttle.Ticket
	reason reasons.Reason // what it would have waited for
	began  time.Time      // when it went on
	over   time.Time      // when it was really over; zero: not yet
	ended  reasons.Reason // how; empty: not yet
}

// shadows are such starts, by the UID of the pod.
type shadows map[string]*shadow

// of returns what is known of the ticket's start if that went on at once, else nil.
func (s shadows) of(t *throttle.Ticket) *shadow {
	if sh := s[t.UID()]; sh != nil && sh.ticket == t {
		return sh
	}
	return nil
}

// GoOn lets a start go on though its ticket waits, in the mode Shadow.
func (s *Starts) GoOn(now time.Time, t *throttle.Ticket, why reasons.Reason) {
	if !s.Ledger.beginShadow(now, t, why) {
		return
	}
	t.Wait(now) // so that it is admitted when its turn comes
	s.Observer.InShadow(t.UID(), t.Name(), why)
}

// beginShadow takes note that a start goes on; false: that is known already.
func (l *Ledger) beginShadow(now time.Time, t *throttle.Ticket, why reasons.Reason) (begins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, recorded := l.book.Get(t.UID()); !recorded || l.shadows.of(t) != nil {
		return false
	}
	l.shadows[t.UID()] = &shadow{ticket: t, reason: why, began: now}
	return true
}

// Shadowed returns what a start would have waited for that went on at once; false: it did not go on.
func (l *Ledger) Shadowed(t *throttle.Ticket) (reason reasons.Reason, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sh := l.shadows.of(t); sh != nil {
		return sh.reason, true
	}
	return "", false
}

// noteOver takes note of when and how a start that went on at once was really over, and gives how long it
// took.
func (l *Ledger) noteOver(t *throttle.Ticket, at time.Time, how reasons.Reason) (took time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sh := l.shadows.of(t)
	if sh == nil {
		return 0, false
	}
	if sh.over.IsZero() {
		sh.over, sh.ended = at, how
	}
	return sh.over.Sub(sh.began), true
}

// endShadows forgets of every start that it went on at once, and gives the pods whose
// tickets still wait.
func (l *Ledger) endShadows() (waiting []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, sh := range l.shadows {
		if state, _ := sh.ticket.Status(); state == throttle.Waiting {
			waiting = append(waiting, uid)
		}
		sh.ticket.StopWaiting(time.Now())
	}
	clear(l.shadows)
	return waiting
}
