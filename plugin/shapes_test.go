package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// smallHerd is a herd of two priorities that a node starts eight at a time, and a daemon that is restarted meanwhile.
func smallHerd() *shapes.Shape {
	s := herd(shapes.Limits{Concurrent: 8}, 60, func(i int, p *shapes.Pod) { p.Priority = int32(100 * (i % 2)) })
	s.Faults = []shapes.Fault{{Kind: shapes.DaemonRestarts, At: 20 * time.Second, Gap: 3 * time.Second}}
	return s
}

// herd returns a shape of pods that come within some seconds and are ready 4 s after their start, but for what differs.
func herd(l shapes.Limits, n int, differs func(i int, p *shapes.Pod)) *shapes.Shape {
	s := &shapes.Shape{Seed: 1, RequestTimeout: 2 * time.Minute, Limits: l}
	for i := range n {
		p := shapes.Pod{
			Name: fmt.Sprintf("herd-%d", i), Namespace: "a", At: time.Duration(i) * 300 * time.Millisecond,
			Policy: corev1.RestartPolicyAlways, Containers: 1, Ready: 4 * time.Second, Probed: true,
		}
		differs(i, &p)
		s.Pods = append(s.Pods, p)
	}
	return s
}

func TestANodeInABubbleKeepsTheRules(t *testing.T) {
	t.Parallel()
	seen := tryShape(t, smallHerd(), false)
	assert.Positive(t, seen.gateWaits)
}
