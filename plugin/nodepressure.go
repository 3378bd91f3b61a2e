package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// pressureBars is why no container waits in the gate while kubelet reports that the node is
// short of memory, disk or process IDs. kubelet evicts pods then, and one that waits in the
// gate it can end only when that wait is over: until it gives up on that pod, it evicts no
// other. A pod that is refused does not hold it up.
const pressureBars = "the node is short of memory, disk or process IDs, and kubelet cannot evict a pod that waits in the gate"

// pressed follows whether kubelet reports that the node is short of something.
func (p *pacer) pressed(short bool) {
	defer p.caught("pressed")
	p.gate.pressure.set(short)
	if short {
		p.log.Warn("the node is short of memory, disk or process IDs: no pod waits in the gate any more, so that kubelet can evict it; pods are refused until this is over")
	} else {
		p.log.Info("the node is no longer short of memory, disk or process IDs: pods may wait in the gate again")
	}
}

// sentAway is the answer to a hook that waits on a node that is short of something: its pod
// keeps its place in the queue.
func sentAway(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if state, _ := t.Status(); state != throttle.Waiting || isClosed(gone) {
		return decided(t, gone)
	}
	return gate.Verdict{Reason: gate.NodePressure}
}
