package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lastResortEvery is the least time between two starts of the last resort, so that a herd does not start at once.
const lastResortEvery = 10 * time.Second

// lastResort notices when the limiter is wrong, by a record of its own of who waits.
type lastResort struct {
	admitted time.Time // when the limiter admitted a pod last
	used     time.Time // when the last resort started a pod last
}

// asking is since when a start has asked and was not admitted. The zero value: it has not asked. It begins anew when the
// pod has a sandbox, because kubelet pulls its images.
type asking struct {
	ticket *throttle.Ticket
	since  time.Time // when the pod first asked
}

// startAsLastResort starts a pod that asks, or that has a process that waits, and that the limiter does not admit for a
// reason, if the limiter should have done so long ago: the pod has waited for its maxWait and longer than two starts may
// take, and for as long the limiter has admitted none. In that time a limiter that works admits an overdue pod, see
// decide.go in package throttle. It does not start a pod that a limit of running pods holds, or startAfter, which has
// a time limit of its own. It reports whether it started the pod.
func (l *ledger) startAsLastResort(now time.Time, p *Pod, reason reasons.Reason) bool {
	if p.asks.ticket != p.ticket || reason == reasons.PolicyRunning || reason == reasons.Unadmittable || reason == reasons.StartAfter {
		p.asks = asking{ticket: p.ticket, since: now}
	}
	r, limits := &l.resort, l.limiter.Settings()
	longest := 2 * max(limits.StartTimeout, limits.FillEvery) // than two starts may take
	if now.Sub(p.asks.since) <= limits.MaxWait+longest || now.Sub(r.admitted) <= longest || now.Sub(r.used) < lastResortEvery {
		return false
	}
	r.used = now
	return l.limiter.StartAnyway(now, p.UID, reasons.LastResort)
}

// note notes what the limiter has decided by its own rules.
func (r *lastResort) note(e throttle.Event) {
	switch e.Reason {
	case reasons.Exempt, reasons.Adopted, reasons.LastResort, reasons.ByHand:
	default:
		if e.State == throttle.Starting {
			r.admitted = e.Time
		}
	}
}
