// Package nodecondition reads from a Node's conditions whether kubelet shuts the node down, and whether the node is under
// pressure.
package nodecondition

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Follower calls a function when a shutdown of the node or pressure on it begins or ends. Create it with [New]. It is not
// safe for concurrent use.
type Follower struct {
	onShutdown, onPressure func(begins bool)

	up       bool // a Node without a shutdown was observed
	down     bool // after that, the shutdown began
	pressure bool
}

// New returns a Follower. It calls onShutdown with true when kubelet begins to report a shutdown of the node, and with
// false when kubelet no longer reports it. It calls onPressure in the same way for memory, disk and PID pressure. kubelet
// reports pressure up to 10 s (its nodeStatusUpdateFrequency) after it has begun to evict pods.
func New(onShutdown, onPressure func(begins bool)) *Follower {
	return &Follower{onShutdown: onShutdown, onPressure: onPressure}
}

// Observe is called with the current Node, and calls the functions before it returns. It ignores a shutdown that the first
// Node reports, because that report may be older than the machine's last boot. It does not ignore pressure: at worst, no
// pod waits in the gate for a while.
func (f *Follower) Observe(node *corev1.Node) {
	shutdown := slices.ContainsFunc(node.Status.Conditions, isShutdown)
	f.up = f.up || !shutdown
	if begins := shutdown && f.up; begins != f.down {
		f.down = begins
		f.onShutdown(begins)
	}
	if begins := slices.ContainsFunc(node.Status.Conditions, isPressure); begins != f.pressure {
		f.pressure = begins
		f.onPressure(begins)
	}
}

// shutdownMessage is in the message of the condition Ready from the moment at which kubelet learns of a shutdown, until the
// shutdown is cancelled or kubelet restarts. kubelet reports a shutdown in no other form.
const shutdownMessage = "node is shutting down"

func isShutdown(c corev1.NodeCondition) bool {
	return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, shutdownMessage)
}

// isPressure reports whether kubelet evicts pods because of a condition.
func isPressure(c corev1.NodeCondition) bool {
	switch c.Type {
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure:
		return c.Status == corev1.ConditionTrue
	default:
		return false
	}
}
