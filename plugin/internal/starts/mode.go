package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// longestShutdown is how long a shutdown counts without an end. The API server may be unable to report its end, and
// pods must not be refused for ever.
const longestShutdown = 10 * time.Minute

// Ends says why all waits end. The zero value: they do not.
type Ends struct {
	HoldsNone reasons.Reason // pods that wait start: observe.Shadow or observe.Disabled; empty if the mode holds pods
	Shutdown  bool           // the node shuts down: pods that wait are refused
	Pressure  bool           // the node is short of memory, disk or process IDs: pods that wait in the gate are refused
}

// nodeEnds is the part of the ledger about what ends all waits.
type nodeEnds struct {
	Ends                        // without HoldsNone, which follows from the mode
	changed       chan struct{} // closed with the next change of Ends or of the mode
	shutdownLimit *time.Timer   // ends a shutdown that is not canceled
}

func (l *ledger) mode() v1alpha1.Mode { return l.config.Load().Spec.GetMode() }

func (l *ledger) ends() Ends {
	e := l.node.Ends
	switch l.mode() {
	case v1alpha1.ModeShadow:
		e.HoldsNone = observe.Shadow
	case v1alpha1.ModeDisabled:
		e.HoldsNone = observe.Disabled
	}
	return e
}

// endsChanged wakes the processes that wait.
func (l *ledger) endsChanged() {
	close(l.node.changed)
	l.node.changed = make(chan struct{})
}

// Ends returns why all waits end now.
func (s *Starts) Ends() Ends {
	s.lock()
	defer s.unlock()
	return s.ledger.ends()
}

// mode returns the mode in force.
func (s *Starts) mode() v1alpha1.Mode { return s.config.Load().Spec.GetMode() }

// Enforces reports whether the mode is Enforce, so that pods wait.
func (s *Starts) Enforces() bool { return s.mode() == v1alpha1.ModeEnforce }

// MayHold reports whether a pod that the pod watch does not know yet may have to wait, by its sandbox alone.
func (s *Starts) MayHold(sandbox *api.PodSandbox) bool {
	return s.Enforces() && !isExempt(s.config.Load().Spec.Exemptions, identify(sandbox), podwatch.Pod{})
}

// SetShutdown handles kubelet's report that the node shuts down, or no longer does. Without a report, a shutdown ends
// after ten minutes. kubelet ends a pod only after the start that it waits for, so hooks that wait would delay the
// shutdown.
func (s *Starts) SetShutdown(begins bool) {
	defer s.o.Observer.Caught("SetShutdown")
	s.lock()
	defer s.unlock()
	n := &s.ledger.node
	if n.Shutdown == begins {
		return
	}
	n.Shutdown = begins
	s.ledger.endsChanged()
	if begins {
		n.shutdownLimit = time.AfterFunc(longestShutdown, func() { s.SetShutdown(false) })
	} else {
		n.shutdownLimit.Stop()
	}
	s.ledger.report(observe.Shutdown{Begins: begins, Waiting: len(s.ledger.limiter.Waiting())})
}

// SetPressure handles kubelet's report that the node is short of memory, disk or process IDs, or no longer is. The
// kubelet cannot evict a pod that waits in the gate.
func (s *Starts) SetPressure(short bool) {
	defer s.o.Observer.Caught("SetPressure")
	s.lock()
	defer s.unlock()
	if n := &s.ledger.node; n.Pressure != short {
		n.Pressure = short
		s.ledger.endsChanged()
	}
	s.ledger.report(observe.NodePressure{Begins: short})
}

// barred returns the decision on a start that no limit could admit.
func barred(reason reasons.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// endShadows ends the mode Shadow: starts that continued at once count as under way. known is what the pod watch knows of
// their pods.
func (l *ledger) endShadows(now time.Time, known map[string]podwatch.Pod) {
	l.effects.wakes = true
	defer l.limiter.Together(now)() // none of them is admitted in its turn now
	for uid, p := range l.pods {
		sh := p.shadow
		if sh == nil {
			continue
		}
		p.shadow = nil // adopt takes no shadow
		sh.ticket.StopWaiting(now)
		ends := sh.ended != ""
		if state, _ := sh.ticket.Status(); state == throttle.Waiting {
			ends = l.adopt(now, p, known[uid], ends) && (sh.ended == reasons.Ready || sh.ended == reasons.Settled)
		}
		if ends {
			sh.ticket.End(now, sh.ended) // its pod may not be ready at this moment
		}
	}
}

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
// it. In the mode Disabled, only admissions that are frozen hold a start. In the mode Shadow, the start is admitted when its
// turn comes.
func (l *ledger) goOn(now time.Time, p *Pod, why reasons.Reason) {
	state, _ := p.ticket.Status()
	switch {
	case l.mode() == v1alpha1.ModeDisabled:
		if p.ticket.StartExempt(now) {
			l.report(observe.Unpaced{Reason: observe.Disabled})
		}
	case state != throttle.Waiting, p.inShadow() != nil: // it goes on already
	case !p.reported, l.mode() != v1alpha1.ModeShadow: // the mode has changed: the start counts once its process runs
	default:
		p.shadow = &shadow{ticket: p.ticket, reason: why, began: now}
		p.ticket.Wait(now)
		l.report(observe.Unpaced{Pod: observe.Pod{UID: p.UID, Name: p.NamespacedName()}, Reason: observe.Shadow, HeldBy: why})
	}
}
