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
	HoldsNone bool // the mode holds no pod: pods that wait start
	Shutdown  bool // the node shuts down: pods that wait are refused
	Pressure  bool // the node is short of memory, disk or process IDs: pods that wait in the gate are refused
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
	e.HoldsNone = l.mode() != v1alpha1.ModeEnforce
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

// WhyHoldsNone returns why no pod is held: observe.Disabled or observe.Shadow. It means nothing in the mode Enforce.
func (s *Starts) WhyHoldsNone() reasons.Reason {
	if s.mode() == v1alpha1.ModeDisabled {
		return observe.Disabled
	}
	return observe.Shadow
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

// changeMode handles a change of the mode. waiting are the pods that waited then. Unless the new mode is Shadow, starts
// that continued at once count as under way.
func (s *Starts) changeMode(now time.Time, before v1alpha1.Mode, waiting []*throttle.Ticket) {
	if mode := s.mode(); mode == before || mode == v1alpha1.ModeShadow {
		return
	}
	known := map[string]podwatch.Pod{}
	for _, t := range waiting {
		known[t.UID()] = s.Known(t.UID())
	}
	s.lock()
	defer s.unlock()
	l := &s.ledger
	l.effects.wakes = true
	ended := map[*Pod]reasons.Reason{} // how the starts ended whose tickets still wait; empty if they have not
	for _, p := range l.pods {
		sh := p.shadow
		if sh == nil {
			continue
		}
		p.shadow = nil // adopt takes no shadow
		switch state, _ := sh.ticket.Status(); {
		case state == throttle.Waiting:
			ended[p] = sh.ended
		case sh.ended != "":
			sh.ticket.End(now, sh.ended) // its pod may not be ready at this moment
		}
		sh.ticket.StopWaiting(now)
	}
	for p, how := range ended {
		if l.adopt(now, p, known[p.UID], how != "") && (how == reasons.Ready || how == reasons.Settled) {
			p.end(now, how) // it may not be ready at this moment
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
// it. In the mode Disabled, only admissions that are frozen hold a start.
func (l *ledger) goOn(now time.Time, p *Pod, why reasons.Reason) {
	switch {
	case l.mode() == v1alpha1.ModeDisabled:
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
	if state, _ := p.start(); state != throttle.Waiting || !p.reported || p.inShadow() != nil || l.mode() != v1alpha1.ModeShadow {
		return false
	}
	p.shadow = &shadow{ticket: p.ticket, reason: why, began: now}
	p.ticket.Wait(now)
	return true
}
