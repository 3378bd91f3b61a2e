package plugin

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// smallHerd is a herd of two priorities that a node starts eight at a time, and a daemon that is restarted meanwhile.
func smallHerd() *shape {
	s := &shape{
		Seed: 1, RequestTimeout: 2 * time.Minute, Limits: limits{Concurrent: 8},
		Faults: []fault{{Kind: daemonRestarts, At: 20 * time.Second, Gap: 3 * time.Second}},
	}
	for i := range 60 {
		s.Pods = append(s.Pods, podShape{
			Name: fmt.Sprintf("herd-%d", i), Namespace: "a", At: time.Duration(i) * 300 * time.Millisecond, Priority: int32(100 * (i % 2)),
			Policy: corev1.RestartPolicyAlways, Containers: 1, Ready: 4 * time.Second, Probed: true,
		})
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
		limitKept:    func(j *judge) { j.inForce[0].Concurrent = 7 },
		noneHeldIdle: func(j *judge) { j.inForce[0].Concurrent = 16 },
		orderKept: func(j *judge) {
			j.shape = j.shape.clone()
			for i := range j.shape.Pods {
				j.shape.Pods[i].Priority = -j.shape.Pods[i].Priority
			}
		},
		fairKept: func(j *judge) {
			j.shape = j.shape.clone()
			for i := range j.shape.Pods {
				j.shape.Pods[i].Namespace = []string{"a", "b"}[i%2]
			}
		},
		everyPodRuns: func(j *judge) {
			j.shape = j.shape.clone()
			j.shape.Pods[3].Crashes = 20
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s := smallHerd()
			s.Faults = nil
			seen := runShape(t, s, misled)
			assert.True(t, slices.ContainsFunc(seen.complaints, func(c complaint) bool { return c.rule == rule }), "%v", seen.complaints)
		})
	}
}
