package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// podChanged takes over what the pod watch tells of a pod.
func (p *pacer) podChanged(pod podwatch.Pod, deleted bool) {
	now := time.Now()
	p.regroup(now, pod, deleted)
	if deleted && !pod.Static { // of a static pod, only the mirror was deleted
		p.forget(now, pod.UID)
		return
	}
	t := p.limiter.Lookup(pod.UID)
	switch {
	case t == nil:
		return
	case pod.Deleting:
		t.End(now, throttle.Deleted)
		return
	}
	switch state, _ := t.Status(); state {
	case throttle.Waiting:
		p.judgeWaiting(now, t, pod)
	case throttle.Starting:
		if again := p.judgeStarting(now, t, pod); !again.IsZero() {
			p.wake()
		}
	}
}

// forget ends the start of a pod that the API server no longer has, and drops what the
// runtime told of it: kubelet has taken down all of it. The runtime does not say so of
// sandboxes that are older than itself.
func (p *pacer) forget(now time.Time, uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.limiter.Lookup(uid); t != nil {
		t.End(now, throttle.Deleted)
	}
	if r := p.records[uid]; r != nil {
		r.clear()
		delete(p.records, uid)
	}
	p.keeper.Forget(now, uid) // after the record: without that, nobody counts the pod again
	p.gate.hooks.forget(uid)
}

// judgeWaiting takes over, for a pod that joined before the watch knew it, its
// priority and whether it has to wait at all.
func (p *pacer) judgeWaiting(now time.Time, t *throttle.Ticket, pod podwatch.Pod) {
	if _, ok := p.shadowed(t); ok {
		p.judgeShadow(now, t, pod)
	} else if pod.Terminal() {
		t.End(now, terminal(pod))
		return
	}
	if p.isExempt(pod) {
		t.StartExempt(now)
		return
	}
	p.limiter.SetPriority(now, pod.UID, pod.Priority, pod.ActiveDeadline/10)
}

// isExempt tells whether a pod that the watch knows is not made to wait.
func (p *pacer) isExempt(pod podwatch.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[pod.UID]
	return r != nil && exemption(p.config.Load().Spec.Exemptions, r, pod, true) != ""
}

// judgeAllWaiting judges every pod that waits again: other pods are exempt now.
func (p *pacer) judgeAllWaiting(now time.Time) {
	if p.pods == nil {
		return
	}
	for _, v := range p.limiter.Snapshot(now).Waiting {
		t := p.limiter.Lookup(v.UID)
		if pod, known := p.pods.Get(v.UID); known && t != nil {
			p.judgeWaiting(now, t, pod)
		}
	}
}

// judgeStarting ends the slot of a pod that has started, as far as the watch can
// say. It gives the time at which to ask again, zero where a change of the pod
// will tell.
func (p *pacer) judgeStarting(now time.Time, t *throttle.Ticket, pod podwatch.Pod) (again time.Time) {
	reason, since, again := p.howItEnded(now, pod)
	if reason == "" {
		return again
	}
	return p.endStart(now, t, reason, since)
}

// howItEnded tells how, and since when, the start of a pod is over; an empty
// reason: it is not, and again is when to look though nothing changes.
func (p *pacer) howItEnded(now time.Time, pod podwatch.Pod) (reason throttle.Reason, since, again time.Time) {
	switch {
	case pod.Deleting:
		return throttle.Deleted, now, time.Time{}
	case pod.Terminal():
		return terminal(pod), now, time.Time{}
	}
	run := p.progressOf(pod.UID, pod)
	if pod.CrashLooping && run.failed {
		return throttle.CrashLoop, now, time.Time{}
	}
	// What kubelet reported of an earlier run says nothing of this start.
	if !run.begun || !pod.Describes(run.ids) {
		return "", time.Time{}, time.Time{}
	}
	if pod.Probed && pod.ContainersReady {
		return throttle.Ready, now, time.Time{}
	}
	if pod.Probed || !pod.AllRunning {
		return "", time.Time{}, time.Time{}
	}
	settled := run.youngest.Add(p.config.Load().Spec.GetSettleTime())
	if now.Before(settled) {
		return "", time.Time{}, settled
	}
	return throttle.Settled, settled, time.Time{}
}

func terminal(pod podwatch.Pod) throttle.Reason {
	if pod.Phase == corev1.PodSucceeded {
		return throttle.Completed
	}
	return throttle.Failed
}

// progressOf tells how far the start of a pod is; report is what the pod watch
// knows of it.
func (p *pacer) progressOf(uid string, report podwatch.Pod) progress {
	v, _ := p.limiter.View(time.Now(), uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	if r == nil {
		return progress{}
	}
	return r.progress(v.Arrived, report)
}

// review asks again about every start under way, and gives the time of the next
// review; zero: none is needed before something changes.
func (p *pacer) review(now time.Time) (next time.Time) {
	for _, uid := range p.startingUIDs() {
		next = sooner(next, p.reviewOne(now, uid))
	}
	return next
}

// reviewOne is review of one start; that it fails says nothing of the others.
func (p *pacer) reviewOne(now time.Time, uid string) (next time.Time) {
	defer p.caught("review")
	t := p.limiter.Lookup(uid)
	if t == nil {
		return time.Time{}
	}
	if p.pods != nil && p.pods.Healthy() {
		if pod, ok := p.pods.Get(uid); ok {
			return p.judgeStarting(now, t, pod)
		}
	}
	return p.judgeBySigns(now, t)
}

func (p *pacer) startingUIDs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	uids := make([]string, 0, len(p.starting))
	for uid := range p.starting {
		uids = append(uids, uid)
	}
	return uids
}
