package starts

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// longestShutdown is how long a shutdown of the node is believed in that nobody calls
// off: where the API server cannot say so, pods do not wait for ever.
const longestShutdown = 10 * time.Minute

// Valve says why waits are of no use. It is part of a Starts, and safe for concurrent use.
type Valve struct {
	mu      sync.Mutex
	state   ValveState
	changed chan struct{} // closed with the next change of state
	over    *time.Timer   // ends a shutdown that nobody calls off
}

// ValveState is why waits are of no use; the zero value: they are.
type ValveState struct {
	LetGo    bool // the mode holds nobody: who waits goes on
	Shutdown bool // the node is being shut down: who waits has to leave
	Pressure bool // the node is short of memory, disk or process IDs: who waits in the gate has to leave
}

func (v *Valve) init() { v.changed = make(chan struct{}) }

// Now gives the state, and a channel that is closed when it is no longer this one.
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
// the start that it waits for is over, and tells nobody before that it wants to: hooks
// that wait would hold the machine up.
func (s *Starts) ShutsDown(begins bool) {
	defer s.Observer.Caught("shutsDown")
	if !s.Valve.set(func(v *ValveState) { v.Shutdown = begins }) {
		return
	}
	s.Valve.expect(begins, func() { s.ShutsDown(false) })
	if begins {
		s.Log.WithField("waiting", len(s.Limiter.Snapshot(time.Now()).Waiting)).
			Warn("the node is being shut down: nobody waits in the gate any more, and pods that would have to wait are refused")
	} else {
		s.Log.Info("the node is not shut down after all: pods wait as ever")
	}
}

// Pressed follows whether kubelet reports that the node is short of something. A pod that waits in
// the gate kubelet cannot evict before that wait is over.
func (s *Starts) Pressed(short bool) {
	defer s.Observer.Caught("pressed")
	s.Valve.set(func(v *ValveState) { v.Pressure = short })
	if short {
		s.Log.Warn("the node is short of memory, disk or process IDs: no pod waits in the gate any more, so that kubelet can evict it; pods are refused until this is over")
	} else {
		s.Log.Info("the node is no longer short of memory, disk or process IDs: pods may wait in the gate again")
	}
}

// ShutsOut tells whether nobody may start who would have to wait.
func (s *Starts) ShutsOut() bool {
	state, _ := s.Valve.Now()
	return state.Shutdown && s.Holds()
}

// Barred is the decision on a start for which no limit could become free.
func Barred(reason throttle.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// WhyUnheld is the reason to let a start go on where nobody is held.
func (s *Starts) WhyUnheld() throttle.Reason {
	if s.Mode() == v1alpha1.ModeOff {
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

// changeMode follows a change of the mode, at which so many pods waited. None is lost: those
// at the gate go on where nobody is held any more, and starts that went on at once count
// among those under way where pods are held again.
func (s *Starts) changeMode(now time.Time, before v1alpha1.Mode, waiting int) {
	mode := s.Mode()
	if mode == before {
		return
	}
	s.Log.WithFields(logrus.Fields{"mode": mode, "before": before, "waiting": waiting}).Warn(modeNews[mode])
	if mode != v1alpha1.ModeShadow {
		for _, uid := range s.endShadows() {
			pod, _ := s.known(uid)
			s.adopt(now, uid, pod)
		}
	}
	s.Valve.set(func(v *ValveState) { v.LetGo = !s.Holds() })
}
