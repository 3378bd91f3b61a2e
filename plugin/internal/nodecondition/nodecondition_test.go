package nodecondition

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Messages of kubelet's Ready condition.
const (
	saysReady     = "kubelet is posting ready status"
	saysShutdown  = "node is shutting down"
	saysBothFault = "[container runtime is down, node is shutting down]"
)

// calls are the calls of a Follower.
type calls struct{ shutdown, pressure []bool }

func follow() (*Follower, *calls) {
	c := &calls{}
	return New(func(b bool) { c.shutdown = append(c.shutdown, b) }, func(b bool) { c.pressure = append(c.pressure, b) }), c
}

func node(conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
}

// ready returns a Node with a message in its condition Ready.
func ready(status corev1.ConditionStatus, message string) *corev1.Node {
	return node(
		corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Message: saysShutdown},
		corev1.NodeCondition{Type: corev1.NodeReady, Status: status, Message: message},
	)
}

// shortOf returns a Node with these conditions true and no others.
func shortOf(short ...corev1.NodeConditionType) *corev1.Node {
	n := node(
		corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: saysReady},
		corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown},
		corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue},
	)
	for _, kind := range short {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return n
}

func TestAShutdownIsReportedWhenItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	f, called := follow()
	f.Observe(ready(corev1.ConditionTrue, saysReady))
	f.Observe(ready(corev1.ConditionFalse, "container runtime is down"))
	f.Observe(ready(corev1.ConditionTrue, saysReady+" after "+saysShutdown))
	assert.Empty(t, called.shutdown)
	f.Observe(ready(corev1.ConditionFalse, saysShutdown))
	f.Observe(ready(corev1.ConditionFalse, saysBothFault))
	assert.Equal(t, []bool{true}, called.shutdown, "each change is reported once")
	f.Observe(ready(corev1.ConditionUnknown, "Kubelet stopped posting node status."))
	assert.Equal(t, []bool{true, false}, called.shutdown)
}

// When the daemon starts, the API server may still have conditions from before the last boot.
func TestAShutdownIsIgnoredIfItsBeginWasNotSeen(t *testing.T) {
	t.Parallel()
	f, called := follow()
	f.Observe(ready(corev1.ConditionFalse, saysShutdown))
	f.Observe(ready(corev1.ConditionFalse, saysBothFault))
	assert.Empty(t, called.shutdown)
	f.Observe(ready(corev1.ConditionTrue, saysReady))
	assert.Empty(t, called.shutdown)
	f.Observe(ready(corev1.ConditionFalse, saysShutdown))
	assert.Equal(t, []bool{true}, called.shutdown)
}

func TestAShortageIsReportedWhenItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	f, called := follow()
	f.Observe(shortOf())
	assert.Empty(t, called.pressure)
	f.Observe(shortOf(corev1.NodePIDPressure))
	assert.Equal(t, []bool{true}, called.pressure)
	f.Observe(shortOf(corev1.NodePIDPressure, corev1.NodeMemoryPressure))
	f.Observe(shortOf(corev1.NodeDiskPressure))
	assert.Equal(t, []bool{true}, called.pressure, "each change is reported once")
	f.Observe(shortOf())
	assert.Equal(t, []bool{true, false}, called.pressure)
}

func TestAShortageIsReportedAlsoIfItsBeginWasNotSeen(t *testing.T) {
	t.Parallel()
	f, called := follow()
	f.Observe(shortOf(corev1.NodeMemoryPressure))
	assert.Equal(t, []bool{true}, called.pressure)
}
