package plugin

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// longestShutdown is how long a shutdown of the node is believed in that nobody calls
// off: where the API server cannot say so, pods do not wait for ever.
const longestShutdown = 10 * time.Minute

// valve ends the waits at the gate while it is set. Made by newValve; safe for concurrent use.
type valve struct {
	mu   sync.Mutex
	done chan struct{} // closed while it is set
}

func newValve() *valve { return &valve{done: make(chan struct{})} }

// set sets the valve or takes that back, and tells whether that is new.
func (v *valve) set(on bool) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if on == isClosed(v.done) {
		return false
	}
	if on {
		close(v.done)
	} else {
		v.done = make(chan struct{})
	}
	return true
}

// opens gives a channel that is closed while the valve is set.
func (v *valve) opens() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.done
}

func (v *valve) isSet() bool { return isClosed(v.opens()) }

// mode is what is done with a start that a limit holds.
func (p *pacer) mode() v1alpha1.Mode { return p.config.Load().Spec.GetMode() }

// holds tells whether anybody is made to wait at all.
func (p *pacer) holds() bool { return p.mode() == v1alpha1.ModeEnforce }

// whyUnheld is the reason to let a start go on where nobody is held.
func (p *pacer) whyUnheld() throttle.Reason {
	if p.mode() == v1alpha1.ModeOff {
		return unpacedOff
	}
	return unpacedShadow
}

// letGo is the answer to a hook that waits where nobody is held any more. gone is
// closed when nothing may start for its container.
func (p *pacer) letGo(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if state, _ := t.Status(); state != throttle.Waiting || isClosed(gone) {
		return decided(t, gone)
	}
	now := time.Now()
	v, _ := p.limiter.View(now, t.UID())
	p.goOn(now, t.UID(), t, v.Reason)
	return gate.Verdict{Go: true, Reason: p.whyUnheld()}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
func (p *pacer) changeMode(now time.Time, before v1alpha1.Mode, waiting int) {
	mode := p.mode()
	if mode == before {
		return
	}
	p.log.WithFields(logrus.Fields{"mode": mode, "before": before, "waiting": waiting}).Warn(modeNews[mode])
	if mode != v1alpha1.ModeShadow {
		for _, r := range p.endShadows() {
			p.find(now, r)
		}
	}
	p.letsGo.set(!p.holds())
}

// shutsDown follows what kubelet says of a shutdown of the node. kubelet ends a pod only when
// the start that it waits for is over, and tells nobody before that it wants to: hooks
// that wait would hold the machine up.
func (p *pacer) shutsDown(begins bool) {
	defer p.caught("shutsDown")
	if !p.shutdown.set(begins) {
		return
	}
	p.mu.Lock()
	if p.shutdownOver != nil {
		p.shutdownOver.Stop()
	}
	if begins {
		p.shutdownOver = time.AfterFunc(longestShutdown, func() { p.shutsDown(false) })
	}
	p.mu.Unlock()
	if begins {
		p.log.WithField("waiting", len(p.limiter.Snapshot(time.Now()).Waiting)).
			Warn("the node is being shut down: nobody waits in the gate any more, and pods that would have to wait are refused")
	} else {
		p.log.Info("the node is not shut down after all: pods wait as ever")
	}
}

// shutOut is the answer to a hook that waits on a node that is being shut down. gone is
// closed when nothing may start for its container anyway.
func shutOut(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if state, _ := t.Status(); state == throttle.Gone || isClosed(gone) {
		return decided(t, gone)
	}
	return gate.Verdict{Reason: gate.NodeShutdown}
}

// barredFor is the decision on a start for which no limit could become free.
func barredFor(reason throttle.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// noGate tells why nobody may wait in the gate now; empty: some may.
func (p *pacer) noGate() string {
	if p.shutdown.isSet() {
		return "the node is being shut down"
	}
	return p.gate.off()
}

// letUp asks whether a pod may come up to wait near its turn.
func (p *pacer) letUp(now time.Time, t *throttle.Ticket) throttle.Decision {
	if p.shutsOut() {
		return barredFor(gate.NodeShutdown)
	}
	return t.Reserve(now, p.options.GateTimeout)
}

// shutsOut tells whether nobody may start who would have to wait.
func (p *pacer) shutsOut() bool {
	return p.shutdown.isSet() && p.holds()
}
