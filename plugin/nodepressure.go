package plugin

import (
	"sync"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// nodePressure closes the gate while kubelet reports that the node is short of memory, disk
// or process IDs. kubelet evicts pods then, and one that waits in the gate it can end only
// when that wait is over: until it gives up on that pod, it evicts no other. A pod that is
// refused does not hold it up. init makes it usable.
type nodePressure struct {
	mu     sync.Mutex
	closes chan struct{} // closed while the node is short
}

func (n *nodePressure) init() { n.closes = make(chan struct{}) }

// set follows what kubelet reports.
func (n *nodePressure) set(short bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case short == isClosed(n.closes):
	case short:
		close(n.closes)
	default:
		n.closes = make(chan struct{})
	}
}

// begun gives a channel that is closed while the node is short.
func (n *nodePressure) begun() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closes
}

// bars tells why no container may wait in the gate; empty: the node is short of nothing.
func (n *nodePressure) bars() string {
	if isClosed(n.begun()) {
		return "the node is short of memory, disk or process IDs, and kubelet cannot evict a pod that waits in the gate"
	}
	return ""
}

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
