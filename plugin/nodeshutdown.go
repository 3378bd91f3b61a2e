package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// longestShutdown is how long a shutdown of the node is believed in that nobody calls
// off: where the API server cannot say so, pods do not wait for ever.
const longestShutdown = 10 * time.Minute

// nodeShutdown tells whether the node is being shut down. kubelet ends a pod only when
// the start that it waits for is over, and tells nobody before that it wants to: hooks
// that wait would hold the machine up. init makes it usable.
type nodeShutdown struct {
	mu    sync.Mutex
	since time.Time     // zero: it is not
	began chan struct{} // closed while it is
}

func (s *nodeShutdown) init() { s.began = make(chan struct{}) }

// set follows what kubelet says, and tells whether that is new.
func (s *nodeShutdown) set(now time.Time, begins bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(now)
	if begins != s.since.IsZero() {
		return false
	}
	if begins {
		s.since = now
		close(s.began)
		return true
	}
	s.endLocked()
	return true
}

// on tells whether the node is being shut down now.
func (s *nodeShutdown) on(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(now)
	return !s.since.IsZero()
}

// begun gives a channel that is closed when a shutdown begins. One that has lasted for
// too long counts as begun, until anybody asks whether it is on.
func (s *nodeShutdown) begun() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

func (s *nodeShutdown) forgetLocked(now time.Time) {
	if !s.since.IsZero() && now.Sub(s.since) >= longestShutdown {
		s.endLocked()
	}
}

func (s *nodeShutdown) endLocked() {
	s.since, s.began = time.Time{}, make(chan struct{})
}

// shutsDown follows what kubelet says of a shutdown of the node.
func (p *pacer) shutsDown(begins bool) {
	defer p.caught("shutsDown")
	now := time.Now()
	if !p.nodeShutdown.set(now, begins) {
		return
	}
	if begins {
		p.log.WithField("waiting", len(p.limiter.Snapshot(now).Waiting)).
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
	return gate.Verdict{Reason: throttle.NodeShutdown}
}

// barredFor is the decision on a start for which no limit could become free.
func barredFor(reason throttle.Reason) throttle.Decision {
	return throttle.Decision{Reason: reason, Held: throttle.Held{Reason: reason}}
}

// noGate tells why nobody may wait in the gate now; empty: some may.
func (p *pacer) noGate(now time.Time) string {
	if p.nodeShutdown.on(now) {
		return "the node is being shut down"
	}
	return p.gate.off()
}

// letUp asks whether a pod may come up to wait near its turn.
func (p *pacer) letUp(now time.Time, t *throttle.Ticket) throttle.Decision {
	if p.shutsOut(now) {
		return barredFor(throttle.NodeShutdown)
	}
	return t.Reserve(now, p.options.GateTimeout)
}

// shutsOut tells whether nobody may start who would have to wait.
func (p *pacer) shutsOut(now time.Time) bool {
	return p.nodeShutdown.on(now) && p.holds()
}
