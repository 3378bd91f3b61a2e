package plugin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/evictions"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// evictionSource is told whose pods wait at the gate, and asked which of them kubelet
// evicts or preempts: the watch of evictions.
type evictionSource interface {
	Enter(namespace string)
	Leave(namespace string)
	TakenDown(pod evictions.Pod) (evictions.Cause, bool)
}

// noEvictions is for a daemon that does not watch them.
type noEvictions struct{}

func (noEvictions) Enter(string) {}

func (noEvictions) Leave(string) {}

func (noEvictions) TakenDown(evictions.Pod) (evictions.Cause, bool) { return "", false }

// followEvictions makes the daemon follow which pods kubelet evicts or preempts.
func (d *Daemon) followEvictions(c clients) {
	d.evictions = evictions.New(c.kube, d.options.NodeName, d.options.Log, func(pod evictions.Pod, cause evictions.Cause) {
		defer d.pacer.caught("podTakenDown")
		d.pacer.podTakenDown(pod, cause)
	})
	d.pacer.evictions = d.evictions
	d.source.OnPressure(d.evictions.SetPressure)
	d.watch.OnChange(func(pod podwatch.Pod, deleted bool) {
		d.evictions.SetUnaccepted(pod.UID, !deleted && mayPreempt(pod))
	})
}

// systemCritical is the least priority of a pod for which kubelet preempts others.
const systemCritical = 2_000_000_000

// mayPreempt tells whether kubelet has still to accept a pod, and preempts others where it
// does not fit. Of a static pod it tells the API server only afterwards. One that is
// deleted meanwhile it goes on to accept.
func mayPreempt(pod podwatch.Pod) bool {
	return pod.Priority >= systemCritical && !pod.Accepted && !pod.Static && !pod.Terminal()
}

// podTakenDown ends the wait of a pod that kubelet evicts or preempts: kubelet takes the
// pod down only when the start that it waits for is over, and does nothing else of the kind,
// nor accepts a pod if it preempts, until it gives up on this one. What does not wait,
// kubelet ends by itself.
func (p *pacer) podTakenDown(pod evictions.Pod, cause evictions.Cause) {
	t := p.limiter.Lookup(pod.UID)
	if t == nil || t.Name() != pod.Namespace+"/"+pod.Name {
		return
	}
	if state, _ := t.Status(); state != throttle.Waiting {
		return
	}
	if _, ok := p.shadowed(t); ok {
		return
	}
	reason := throttle.Evicted
	if cause == evictions.Preemption {
		reason = throttle.Preempted
	}
	t.End(time.Now(), reason)
}

// byKubelet tells whether a ticket ends for this reason because kubelet takes its pod down.
func byKubelet(reason throttle.Reason) bool {
	return reason == throttle.Evicted || reason == throttle.Preempted
}

// isTakenDown tells whether a ticket has ended because kubelet takes its pod down, not long ago.
func (p *pacer) isTakenDown(now time.Time, t *throttle.Ticket) bool {
	if _, reason := t.Status(); !byKubelet(reason) {
		return false
	}
	v, _ := p.limiter.View(now, t.UID())
	return byKubelet(v.Reason) && now.Sub(v.Ended) < evictions.Believed
}
