package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// longestShutdown is how long a shutdown counts without an end. The API server may be unable to report its end, and
// pods must not be refused for ever.
const longestShutdown = 10 * time.Minute

// Valve decides whether pods are held at all, and ends waits. It is part of a Starts, and safe for concurrent use.
type Valve struct {
	s *Starts

	// The lock of the Starts guards these.
	ends          ValveState    // without HoldsNone, which follows from the mode
	changed       chan struct{} // closed with the next change of ends, or of the mode
	shutdownLimit *time.Timer   // ends a shutdown that is not canceled
}

// ValveState says why waits end. The zero value: they do not.
type ValveState struct {
	HoldsNone bool // the mode holds no pod: pods that wait start
	Shutdown  bool // the node shuts down: pods that wait are refused
	Pressure  bool // the node is short of memory, disk or process IDs: pods that wait in the gate are refused
}

func newValve(s *Starts) *Valve { return &Valve{s: s, changed: make(chan struct{})} }

// Mode returns the mode in force.
func (v *Valve) Mode() v1alpha1.Mode { return v.s.config.Load().Spec.GetMode() }

// Enforces reports whether the mode is Enforce, so that pods wait.
func (v *Valve) Enforces() bool { return v.Mode() == v1alpha1.ModeEnforce }

// Now returns the state, and a channel that is closed when the state changes.
func (v *Valve) Now() (ValveState, <-chan struct{}) {
	v.s.lock()
	defer v.s.unlock()
	return v.stateLocked(), v.changed
}

func (v *Valve) stateLocked() ValveState {
	state := v.ends
	state.HoldsNone = !v.Enforces()
	return state
}

// modeChanged wakes all that wait for a change.
func (v *Valve) modeChanged() {
	v.s.lock()
	defer v.s.unlock()
	v.notifyLocked()
}

// notifyLocked closes the channel that Now returned.
func (v *Valve) notifyLocked() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// SetShutdown handles kubelet's report that the node shuts down, or no longer does. Without a report, a shutdown ends
// after ten minutes. kubelet ends a pod only after the start that it waits for, so hooks that wait would delay the
// shutdown.
func (v *Valve) SetShutdown(begins bool) {
	defer v.s.o.Observer.Caught("SetShutdown")
	v.s.lock()
	defer v.s.unlock()
	if v.ends.Shutdown == begins {
		return
	}
	v.ends.Shutdown = begins
	v.notifyLocked()
	if begins {
		v.shutdownLimit = time.AfterFunc(longestShutdown, func() { v.SetShutdown(false) })
	} else {
		v.shutdownLimit.Stop()
	}
	v.s.ledger.report(observe.Shutdown{Begins: begins, Waiting: len(v.s.ledger.limiter.Waiting())})
}

// SetPressure handles kubelet's report that the node is short of memory, disk or process IDs, or no longer is. The
// kubelet cannot evict a pod that waits in the gate.
func (v *Valve) SetPressure(short bool) {
	defer v.s.o.Observer.Caught("SetPressure")
	v.s.lock()
	defer v.s.unlock()
	if v.ends.Pressure != short {
		v.ends.Pressure = short
		v.notifyLocked()
	}
	v.s.ledger.report(observe.NodePressure{Begins: short})
}

// barred returns the decision on a start that no limit could admit.
func barred(reason reasons.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// WhyHoldsNone returns why no pod is held: observe.Disabled or observe.Shadow. It means nothing in the mode Enforce.
func (v *Valve) WhyHoldsNone() reasons.Reason {
	if v.Mode() == v1alpha1.ModeDisabled {
		return observe.Disabled
	}
	return observe.Shadow
}

// changeMode handles a change of the mode. waiting are the pods that waited then. Unless the new mode is Shadow, starts
// that continued at once count as under way.
func (s *Starts) changeMode(now time.Time, before v1alpha1.Mode, waiting []*throttle.Ticket) {
	if mode := s.Valve.Mode(); mode == before || mode == v1alpha1.ModeShadow {
		return
	}
	known := map[string]podwatch.Pod{}
	for _, t := range waiting {
		known[t.UID()] = s.Known(t.UID())
	}
	s.endShadows(now, known)
	s.Wake()
}
