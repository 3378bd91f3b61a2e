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
	maxWait, longest time.Duration      // longest: than two starts may take
	held             map[string]heldPod // the pods that the limiter did not admit when they asked, by UID
	admitted         time.Time          // when the limiter admitted a pod last
	used             time.Time          // when the last resort started a pod last
}

type heldPod struct {
	ticket *throttle.Ticket
	since  time.Time // when the pod first asked
}

func newLastResort(now time.Time) *lastResort {
	r := &lastResort{held: map[string]heldPod{}, admitted: now}
	r.configure(throttle.Settings{})
	return r
}

// startAsLastResort starts a pod that asks, or that has a process that waits, and that the limiter does not admit for a
// reason, if the limiter should have done so long ago: the pod has waited for its maxWait and longer than two starts may
// take, and for as long the limiter has admitted none. In that time a limiter that works admits an overdue pod, see
// "Deadlines" in package throttle. It does not start a pod that a limit of running pods holds, or startAfter, which has
// a time limit of its own. It reports whether it started the pod.
func (e *entries) startAsLastResort(now time.Time, t *throttle.Ticket, reason reasons.Reason) bool {
	return e.resort.isDue(now, t, reason) && e.limiter.StartAnyway(now, t.UID(), reasons.LastResort)
}

// isDue notes that a pod asks, and that the limiter does not admit it for a reason. It reports whether the last resort is
// to start the pod now.
func (r *lastResort) isDue(now time.Time, t *throttle.Ticket, reason reasons.Reason) bool {
	uid := t.UID()
	one := r.held[uid]
	if one.ticket != t || reason == reasons.PolicyRunning || reason == reasons.Unadmittable || reason == reasons.StartAfter {
		one = heldPod{ticket: t, since: now}
		r.held[uid] = one
	}
	if now.Sub(one.since) <= r.maxWait+r.longest || now.Sub(r.admitted) <= r.longest || now.Sub(r.used) < lastResortEvery {
		return false
	}
	r.used = now
	return true
}

// note notes what the limiter has decided by its own rules.
func (r *lastResort) note(e throttle.Event) {
	switch e.Reason {
	case reasons.Exempt, reasons.Adopted, reasons.LastResort, reasons.ByHand:
		return
	}
	if e.State != throttle.Starting {
		return
	}
	r.admitted = e.Time
}

// forget forgets when a pod began to wait: it is gone, or has a sandbox, for which kubelet pulls its images.
func (r *lastResort) forget(uid string) { delete(r.held, uid) }

func (r *lastResort) configure(s throttle.Settings) {
	s = s.WithDefaults()
	r.maxWait, r.longest = s.MaxWait, 2*max(s.StartTimeout, s.FillEvery)
}
