// Package nodecondition reads in a Node's conditions what kubelet reports of a shutdown of the node and of what the node
// is short of.
package nodecondition

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Follower calls back when a shutdown of the node, or a shortage on it, begins and ends. Make it with [New]. It is not
// safe for concurrent use.
type Follower struct {
	onShutdown, onPressure func(begins bool)

	up      bool // the Node was seen when it was not being shut down
	down    bool // it is being shut down since
	pressed bool // it is short of something
}

// New returns a Follower. It calls onShutdown with true when kubelet begins to report that the node is being shut down,
// and with false when kubelet no longer does. It calls onPressure in the same way when the node is short of memory,
// disk or process IDs. kubelet reports that up to 10 s (its nodeStatusUpdateFrequency) after it has begun to evict pods.
func New(onShutdown, onPressure func(begins bool)) *Follower {
	return &Follower{onShutdown: onShutdown, onPressure: onPressure}
}

// Observe takes the Node as it is now, and calls back before it returns. A shutdown that the first Node shows already is
// not believed, because that report may be older than the machine's last boot. A shortage is: at worst no pod waits in
// the gate for a while.
func (f *Follower) Observe(node *corev1.Node) {
	shutdown := slices.ContainsFunc(node.Status.Conditions, isShutdown)
	f.up = f.up || !shutdown
	if begins := shutdown && f.up; begins != f.down {
		f.down = begins
		f.onShutdown(begins)
	}
	if begins := slices.ContainsFunc(node.Status.Conditions, isPressure); begins != f.pressed {
		f.pressed = begins
		f.onPressure(begins)
	}
}

// shutdownMessage is part of the message of the condition Ready from the moment in which the machine tells kubelet of a
// shutdown, until that is called off or kubelet starts again. kubelet reports a shutdown in no other form.
const shutdownMessage = "node is shutting down"

func isShutdown(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, shutdownMessage)
}

// isPressure reports whether a condition is one for which kubelet evicts pods.
func isPressure(c corev1.NodeCondition) bool {
	switch c.Type {
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return c.Status == corev1.ConditionTrue
	default:
		return false
	}
}
