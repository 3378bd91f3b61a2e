package shapes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestASeedAlwaysDrawsTheSameShape(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(uint64) *Shape{"of a bubble": Draw, "of a node": DrawNode} {
		first, again, other := draw(7), draw(7), draw(8)
		assert.Equal(t, first, again, name)
		assert.NotEqual(t, first.String(), other.String(), name)
	}
}

// A node of two cores must bear each shape, and one part of it stops at a time: the next one is not started again before
// that before it runs.
func TestANodeBearsItsShapes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		s := DrawNode(seed)
		assert.NotEmpty(t, s.Pods, seed)
		assert.LessOrEqual(t, len(s.Pods), nodePods, seed)
		var work, back time.Duration
		for _, p := range s.Pods {
			work += p.Work() / time.Duration(s.Limits.Concurrent)
			assert.LessOrEqual(t, p.At, nodeSpan, seed)
			assert.LessOrEqual(t, p.Labels, 0, seed)
			assert.False(t, p.Hangs > 0 && p.Startup == nil && p.Liveness == nil, "seed %d: nothing kills %s", seed, p.Name)
			assert.False(t, p.Crashes > 0 && p.Policy != corev1.RestartPolicyAlways, "seed %d: nothing starts %s again", seed, p.Name)
		}
		assert.LessOrEqual(t, work, nodeBusy+nodeStart, seed)
		for _, f := range s.Faults {
			assert.NotContains(t, []FaultKind{ClockIsSet, NodeIsBusy, ConnectionDrops}, f.Kind, seed)
			assert.GreaterOrEqual(t, f.At, back, seed)
			back = f.At + f.Gap
		}
	}
}

// What a probe kills for good never gets ready, with no fault of the daemon.
func TestNoProbeKillsWhatGetsReady(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		for _, p := range append(Draw(seed+plainSeeds).Pods, DrawNode(seed).Pods...) {
			if p.Startup != nil {
				assert.Greater(t, p.Startup.Period*time.Duration(p.Startup.Failures), p.Ready, "seed %d: %s", seed, p)
			}
			if p.Liveness != nil {
				assert.GreaterOrEqual(t, p.Liveness.Delay+p.Liveness.Period*time.Duration(p.Liveness.Failures-1), p.Ready, "seed %d: %s", seed, p)
			}
		}
	}
}

// What an API server refuses, no daemon sees.
func TestAnAPIServerTakesLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	pod := Pod{Labels: 500 << 10}.Object()
	for name, value := range pod.Labels {
		assert.Empty(t, validation.IsValidLabelValue(value), name)
	}
	assert.NoError(t, apivalidation.ValidateAnnotationsSize(pod.Annotations))
}

func TestStepsAreInOrderAndEndWhatLasts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		s, lasts := Draw(seed+idleSeeds), 0
		for _, f := range s.Faults {
			if f.Kind.Lasts() {
				lasts++
			}
		}
		var before time.Duration
		for _, step := range s.Steps() {
			assert.GreaterOrEqual(t, step.At, before, seed)
			if before = step.At; step.Fault != nil && step.Ends {
				lasts--
			}
		}
		assert.Zero(t, lasts, seed)
	}
}
