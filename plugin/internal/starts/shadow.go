package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// shadow is a start that continued at once in the mode Shadow. Its ticket waits, and then holds a slot, as the
// start would in the mode Enforce. It holds the slot for as long as the start really took.
type shadow struct {
	ticket  *throttle.Ticket
	reason  reasons.Reason // the limit that would have held it
	began   time.Time      // when it continued
	endedAt time.Time      // when it really ended; zero if it has not
	ended   reasons.Reason // how it ended; empty if it has not
	settles time.Time      // when to judge that again; zero if its pod has to change first
}

// shadows are those starts, by the UID of the pod.
type shadows map[string]*shadow

// of returns the shadow of a ticket, or nil if there is no ticket, or its start did not continue at once.
func (s shadows) of(t *throttle.Ticket) *shadow {
	if t == nil || s[t.UID()] == nil || s[t.UID()].ticket != t {
		return nil
	}
	return s[t.UID()]
}

// end notes when and how the start really was over, unless that is known already, and returns how long it took.
func (sh *shadow) end(at time.Time, how reasons.Reason) (took time.Duration) {
	if sh.endedAt.IsZero() {
		sh.endedAt, sh.ended = at, how
	}
	return sh.endedAt.Sub(sh.began)
}

// goOn lets a start continue though its ticket waits, because the mode holds no pod. why is the limit that would have held
// it. It returns what is to be reported, or nil. In the mode Disabled, only admissions that are frozen hold a start.
func (e *entries) goOn(now time.Time, t *throttle.Ticket, why reasons.Reason) observe.Event {
	switch {
	case e.config.Load().Spec.GetMode() == v1alpha1.ModeDisabled:
		if t.StartExempt(now) {
			return observe.Unpaced{Reason: observe.Disabled}
		}
	case e.beginShadow(now, t, why):
		return observe.Unpaced{Pod: observe.Pod{UID: t.UID(), Name: t.Name()}, Reason: observe.Shadow, HeldBy: why}
	}
	return nil
}

// beginShadow notes that a start continues at once, and that it is admitted when its turn comes. It returns false if that
// is known already, the pod is not, or the mode has changed: then the start counts once its process runs.
func (e *entries) beginShadow(now time.Time, t *throttle.Ticket, why reasons.Reason) (begins bool) {
	_, inBook := e.book.Get(t.UID())
	if state, _ := t.Status(); state != throttle.Waiting || !inBook || e.shadows.of(t) != nil || e.config.Load().Spec.GetMode() != v1alpha1.ModeShadow {
		return false
	}
	e.shadows[t.UID()] = &shadow{ticket: t, reason: why, began: now}
	t.Wait(now)
	return true
}

// InShadow returns the pods whose latest start continued at once in the mode Shadow, by UID.
func (l *Ledger) InShadow() map[string]bool {
	l.lock()
	defer l.unlock()
	all := make(map[string]bool, len(l.entries.shadows))
	for uid, sh := range l.entries.shadows {
		all[uid] = l.entries.limiter.Lookup(uid) == sh.ticket
	}
	return all
}

// endShadows ends the mode Shadow. If the ticket of a start that continued at once still waits, the start counts as
// starting from now on. known is what the pod watch knows of the pods.
func (l *Ledger) endShadows(now time.Time, known map[string]podwatch.Pod) {
	l.lock()
	defer l.unlock()
	var waiting []*shadow
	for _, sh := range l.entries.shadows {
		if state, _ := sh.ticket.Status(); state == throttle.Waiting {
			waiting = append(waiting, sh)
		}
		sh.ticket.StopWaiting(now)
	}
	clear(l.entries.shadows) // adopt takes no shadow
	for _, sh := range waiting {
		adopted := l.entries.adopt(now, sh.ticket.UID(), known[sh.ticket.UID()], sh.ended != "")
		if adopted && (sh.ended == reasons.Ready || sh.ended == reasons.Settled) {
			sh.ticket.End(now, sh.ended) // it may not be ready at this moment
		}
	}
}
