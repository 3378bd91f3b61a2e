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

// end notes when and how the start really was over, unless that is known already, and returns how long it took.
func (sh *shadow) end(at time.Time, how reasons.Reason) (took time.Duration) {
	if sh.endedAt.IsZero() {
		sh.endedAt, sh.ended = at, how
	}
	return sh.endedAt.Sub(sh.began)
}

// goOn lets a start continue though its ticket waits, because the mode holds no pod. why is the limit that would have held
// it. In the mode Disabled, only admissions that are frozen hold a start.
func (l *ledger) goOn(now time.Time, p *Pod, why reasons.Reason) {
	switch {
	case l.config.Load().Spec.GetMode() == v1alpha1.ModeDisabled:
		if p.ticket.StartExempt(now) {
			l.report(observe.Unpaced{Reason: observe.Disabled})
		}
	case l.beginShadow(now, p, why):
		l.report(observe.Unpaced{Pod: observe.Pod{UID: p.UID, Name: p.NamespacedName()}, Reason: observe.Shadow, HeldBy: why})
	}
}

// beginShadow notes that a start continues at once, and that it is admitted when its turn comes. It returns false if that
// is known already, or the mode has changed: then the start counts once its process runs.
func (l *ledger) beginShadow(now time.Time, p *Pod, why reasons.Reason) (begins bool) {
	if state, _ := p.start(); state != throttle.Waiting || !p.reported || p.inShadow() != nil || l.config.Load().Spec.GetMode() != v1alpha1.ModeShadow {
		return false
	}
	p.shadow = &shadow{ticket: p.ticket, reason: why, began: now}
	p.ticket.Wait(now)
	return true
}

// endShadows ends the mode Shadow. If the ticket of a start that continued at once still waits, the start counts as
// starting from now on. known is what the pod watch knows of the pods.
func (s *Starts) endShadows(now time.Time, known map[string]podwatch.Pod) {
	s.lock()
	defer s.unlock()
	var waiting []*Pod
	for _, p := range s.ledger.pods {
		if p.shadow == nil {
			continue
		}
		if state, _ := p.shadow.ticket.Status(); state == throttle.Waiting {
			waiting = append(waiting, p)
		}
		p.shadow.ticket.StopWaiting(now)
	}
	ended := map[*Pod]reasons.Reason{}
	for _, p := range s.ledger.pods {
		if p.shadow != nil {
			ended[p], p.shadow = p.shadow.ended, nil // adopt takes no shadow
		}
	}
	for _, p := range waiting {
		how := ended[p]
		if s.ledger.adopt(now, p, known[p.UID], how != "") && (how == reasons.Ready || how == reasons.Settled) {
			p.end(now, how) // it may not be ready at this moment
		}
	}
}
