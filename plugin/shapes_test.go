package plugin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
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

// The judge must be able to say no. A judge that believes something else than the daemon was told finds that the daemon
// breaks the rule.
func TestTheJudgeSaysNo(t *testing.T) {
	t.Parallel()
	for rule, misled := range map[string]func(*judge){
		signalKept:   func(j *judge) { j.inForce[0].Most = 10 },
		limitKept:    func(j *judge) { j.inForce[0].Concurrent = 7 },
		noneHeldIdle: func(j *judge) { j.inForce[0].Concurrent = 16 },
		orderKept: func(j *judge) {
			j.shape = j.shape.Clone()
			for i := range j.shape.Pods {
				j.shape.Pods[i].Priority = -j.shape.Pods[i].Priority
			}
		},
		fairKept: func(j *judge) {
			j.shape = j.shape.Clone()
			for i := range j.shape.Pods {
				j.shape.Pods[i].Namespace = []string{"a", "b"}[i%2]
			}
		},
		everyPodRuns: func(j *judge) {
			j.shape = j.shape.Clone()
			j.shape.Pods[3].Crashes = 20
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s := smallHerd()
			s.Limits.Signal, s.Limits.Most = throttle.SignalMemoryPressure, 90
			s.Faults = []shapes.Fault{{Kind: shapes.NodeIsBusy, Gap: time.Hour, Load: shapes.Load{Memory: 30}}}
			seen := runShape(t, s, misled)
			assert.True(t, slices.ContainsFunc(seen.complaints, func(c complaint) bool { return c.rule == rule }), "%v", seen.complaints)
		})
	}
}
