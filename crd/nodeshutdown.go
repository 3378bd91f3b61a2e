package crd

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// shutdownMessage is part of what kubelet says in its Node's condition Ready from the
// moment in which the machine tells it of a shutdown, until that is called off or
// kubelet starts again. It says so in no other form.
const shutdownMessage = "node is shutting down"

// OnShutdown has tell called when kubelet says that this node is being shut down, with
// true, and when it does so no longer, with false: in order, never twice at a time, and
// without a lock held. What the Node says when it is seen first is not believed: it may
// be of before the machine was booted. OnShutdown is to be called before Run.
func (s *Source) OnShutdown(tell func(begins bool)) { s.onShutdown = tell }

// noteShutdown takes over what kubelet says of a shutdown. It is called by the one
// goroutine that tells of this node.
func (s *Source) noteShutdown(node *corev1.Node) {
	says := shutsDown(node)
	s.seenUp = s.seenUp || !says
	if begins := says && s.seenUp; begins != s.down {
		s.down = begins
		if s.onShutdown != nil {
			s.onShutdown(begins)
		}
	}
}

// shutsDown tells whether kubelet says so.
func shutsDown(node *corev1.Node) bool {
	ready := readyCondition(node)
	return len(ready) > 0 && ready[0].Status == corev1.ConditionFalse && strings.Contains(ready[0].Message, shutdownMessage)
}

// readyCondition gives the condition Ready of a Node alone; empty: it has none.
func readyCondition(node *corev1.Node) []corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return []corev1.NodeCondition{c}
		}
	}
	return nil
}
