package crd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// OnPressure has tell called when kubelet says that this node runs short of memory, disk
// or process IDs, with true, and when it runs short of none any more, with false: in
// order, never twice at a time, and without a lock held. kubelet says so up to 10 s (its
// nodeStatusUpdateFrequency) after it has begun to evict pods for it. What the Node says
// when it is seen first is told, too. OnPressure is to be called before Run.
func (s *Source) OnPressure(tell func(begins bool)) { s.onPressure = tell }

// notePressure takes over what kubelet says it runs short of. It is called by the one
// goroutine that tells of this node.
func (s *Source) notePressure(node *corev1.Node) {
	if begins := len(pressures(node)) > 0; begins != s.pressed {
		s.pressed = begins
		if s.onPressure != nil {
			s.onPressure(begins)
		}
	}
}

// pressureConditions are those for which kubelet evicts pods.
var pressureConditions = []corev1.NodeConditionType{
	corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
}

// pressures gives the conditions of a Node by which it runs short of something.
func pressures(node *corev1.Node) (short []corev1.NodeCondition) {
	for _, c := range node.Status.Conditions {
		if c.Status == corev1.ConditionTrue && slices.Contains(pressureConditions, c.Type) {
			short = append(short, c)
		}
	}
	return short
}
