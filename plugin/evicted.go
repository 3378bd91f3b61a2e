package plugin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/evictions"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// evictionSource is told whose pods wait at the gate, and asked which of them kubelet
// evicts: the watch of evictions.
type evictionSource interface {
	Enter(namespace string)
	Leave(namespace string)
	Evicted(pod evictions.Pod) bool
}

// noEvictions is for a daemon that does not watch them.
type noEvictions struct{}

func (noEvictions) Enter(string) {}

func (noEvictions) Leave(string) {}

func (noEvictions) Evicted(evictions.Pod) bool { return false }

// followEvictions makes the daemon follow which pods kubelet evicts.
func (d *Daemon) followEvictions(c clients) {
	d.evictions = evictions.New(c.kube, d.options.NodeName, d.options.Log, func(pod evictions.Pod) {
		defer d.pacer.caught("podEvicted")
		d.pacer.podEvicted(pod)
	})
	d.pacer.evictions = d.evictions
	d.source.OnPressure(d.evictions.SetPressure)
}

// podEvicted ends the wait of a pod that kubelet evicts: kubelet takes the pod down only
// when the start that it waits for is over, and evicts no other pod until it gives up on
// this one. What does not wait, kubelet ends by itself.
func (p *pacer) podEvicted(pod evictions.Pod) {
	t := p.limiter.Lookup(pod.UID)
	if t == nil || t.Name() != pod.Namespace+"/"+pod.Name {
		return
	}
	if state, _ := t.Status(); state != throttle.Waiting {
		return
	}
	if _, ok := p.shadowed(t); !ok {
		t.End(time.Now(), throttle.Evicted)
	}
}

// isEvicted tells whether a ticket has ended because kubelet evicts its pod, not long ago.
func (p *pacer) isEvicted(now time.Time, t *throttle.Ticket) bool {
	if _, reason := t.Status(); reason != throttle.Evicted {
		return false
	}
	v, _ := p.limiter.View(now, t.UID())
	return v.Reason == throttle.Evicted && now.Sub(v.Ended) < evictions.Believed
}
