package starts

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// longestShutdown is how long a shutdown of the node is believed in that is not called
// off: where the API server cannot say so, pods do not wait for ever.
const longestShutdown = 10 * time.Minute

// Valve says whether any pod is held at all, and why waits are of no use. It is part of a Starts,
// and safe for concurrent use.
type Valve struct {
	limiter  *throttle.Limiter
	observer *observe.Observer
	log      logrus.FieldLogger
	config   *atomic.Pointer[crd.Effective]

	mu      sync.Mutex
	state   ValveState
	changed chan struct{} // closed with the next change of state
	over    *time.Timer   // ends a shutdown that is not called off
}

// ValveState is why waits are of no use; the zero value: they are.
type ValveState struct {
	LetGo    bool // the mode holds no pod: those that wait go on
	Shutdown bool // the node is being shut down: pods that wait have to leave
	Pressure bool // the node is short of memory, disk or process IDs: pods that wait in the gate have to leave
}

func newValve(o Options, config *atomic.Pointer[crd.Effective]) *Valve {
	return &Valve{limiter: o.Limiter, observer: o.Observer, log: o.Log, config: config, changed: make(chan struct{})}
}

// Mode is what is done with a start that a limit holds.
func (v *Valve) Mode() v1alpha1.Mode { return v.config.Load().Spec.GetMode() }

// Holds reports whether any pod is made to wait at all.
func (v *Valve) Holds() bool { return v.Mode() == v1alpha1.ModeEnforce }

// Now returns the state, and a channel that is closed when it is no longer this one.
func (v *Valve) Now() (ValveState, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.changed
}

// set changes the state, and tells whether that made a difference.
func (v *Valve) set(change func(*ValveState)) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.state
	change(&v.state)
	if v.state == before {
		return false
	}
	close(v.changed)
	v.changed = make(chan struct{})
	return true
}

// expect has f called when a shutdown that begins has lasted for too long.
func (v *Valve) expect(begins bool, f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over != nil {
		v.over.Stop()
	}
	if begins {
		v.over = time.AfterFunc(longestShutdown, f)
	}
}

// ShutsDown follows what kubelet says of a shutdown of the node. kubelet ends a pod only when
// the start that it waits for is over, and does not announce it before: hooks
// that wait would hold the machine up.
func (v *Valve) ShutsDown(begins bool) {
	defer v.observer.Caught("shutsDown")
	if !v.set(func(s *ValveState) { s.Shutdown = begins }) {
		return
	}
	v.expect(begins, func() { v.ShutsDown(false) })
	if begins {
		v.log.WithField("waiting", len(v.limiter.Snapshot(time.Now()).Waiting)).
			Warn("the node is being shut down: no pod waits in the gate any more, and pods that would have to wait are refused")
	} else {
		v.log.Info("the node is not shut down after all: pods wait as ever")
	}
}

// Pressed follows whether kubelet reports that the node is short of something. A pod that waits in
// the gate kubelet cannot evict before that wait is over.
func (v *Valve) Pressed(short bool) {
	defer v.observer.Caught("pressed")
	v.set(func(s *ValveState) { s.Pressure = short })
	if short {
		v.log.Warn("the node is short of memory, disk or process IDs: no pod waits in the gate any more, so that kubelet can evict it; pods are refused until this is over")
	} else {
		v.log.Info("the node is no longer short of memory, disk or process IDs: pods may wait in the gate again")
	}
}

// ShutsOut reports whether no pod may start that would have to wait.
func (v *Valve) ShutsOut() bool {
	state, _ := v.Now()
	return state.Shutdown && v.Holds()
}

// Barred is the decision on a start for which no limit could become free.
func Barred(reason reasons.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// WhyUnheld is the reason to let a start go on where no pod is held.
func (v *Valve) WhyUnheld() reasons.Reason {
	if v.Mode() == v1alpha1.ModeOff {
		return observe.Off
	}
	return observe.Shadow
}

// modeNews says what a change to a mode means for those that wait.
var modeNews = map[v1alpha1.Mode]string{
	v1alpha1.ModeEnforce: "the mode is Enforce now: starts wait for the limits",
	v1alpha1.ModeShadow:  "the mode is Shadow now: those that wait go on at once, and what would have been is reported",
	v1alpha1.ModeOff:     "the mode is Off now: no limit is in force, and those that wait go on at once",
}

// changeMode follows a change of the mode, at which this many pods waited. None is lost: those
// at the gate go on where no pod is held any more, and starts that went on at once count
// among those under way where pods are held again.
func (s *Starts) changeMode(now time.Time, before v1alpha1.Mode, waiting int) {
	mode := s.Valve.Mode()
	if mode == before {
		return
	}
	s.Log.WithFields(logrus.Fields{"mode": mode, "before": before, "waiting": waiting}).Warn(modeNews[mode])
	if mode != v1alpha1.ModeShadow {
		for _, uid := range s.Ledger.endShadows() {
			pod, _ := s.known(uid)
			s.Ledger.adopt(now, uid, pod)
		}
		s.Wake()
	}
	s.Valve.set(func(v *ValveState) { v.LetGo = !s.Valve.Holds() })
}
