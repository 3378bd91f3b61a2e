package starts

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Snapshot returns the state of the limiter.
func (s *Starts) Snapshot(now time.Time) throttle.Snapshot {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Snapshot(now)
}

// Groups returns the counts of each group of a policy that has pods or claims, in the order of the keys.
func (s *Starts) Groups(now time.Time) []throttle.GroupView {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Groups(now)
}

// Recent returns the last 256 starts that have ended, the latest at the end.
func (s *Starts) Recent() []throttle.TicketView {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Recent()
}

// View returns the latest start of a pod; ok is false if there is none.
func (s *Starts) View(now time.Time, uid string) (v throttle.TicketView, ok bool) {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.View(now, uid)
}

// Busy reports whether a pod starts, and whether one waits, as [throttle.Limiter.Busy] counts them.
func (s *Starts) Busy(now time.Time) (starting, waiting bool) {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Busy(now)
}

// InShadow returns the pods whose latest start continued at once in the mode Shadow, by UID.
func (s *Starts) InShadow() map[string]bool {
	s.lock()
	defer s.unlock()
	all := map[string]bool{}
	for uid, p := range s.ledger.pods {
		if p.inShadow() != nil {
			all[uid] = true
		}
	}
	return all
}

// AnyCgroup returns the cgroup of one of the pods that the runtime has reported, as the runtime names it; "" if it knows
// none.
func (s *Starts) AnyCgroup() string {
	s.lock()
	defer s.unlock()
	for _, p := range s.ledger.pods {
		if p.cgroup != "" {
			return p.cgroup
		}
	}
	return ""
}

// Observe replaces the readings of the sensors, and admits the pods that may start because of that.
func (s *Starts) Observe(now time.Time, signals throttle.Signals) {
	s.lock()
	defer s.unlock()
	s.ledger.limiter.Observe(now, signals)
}

// SetClaims sets how many pods of the group may start at a time. Below zero means any number.
func (s *Starts) SetClaims(now time.Time, key throttle.GroupKey, starts int) {
	s.lock()
	defer s.unlock()
	s.ledger.limiter.SetClaims(now, key, starts)
}

// StartAnyway admits the pod at once, whatever the limits say. It returns false if the pod does not wait.
func (s *Starts) StartAnyway(now time.Time, uid string, reason reasons.Reason) bool {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.StartAnyway(now, uid, reason)
}

// live returns the tickets that wait or start, in no order.
func (s *Starts) live() []*throttle.Ticket {
	s.lock()
	defer s.unlock()
	return slices.Concat(s.ledger.limiter.Waiting(), s.ledger.limiter.Starting())
}
