//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// executesProbe adds an exec readiness probe each second, which goes on when the pod is ready.
func executesProbe(spec *corev1.PodSpec) {
	withExecProbe(spec)
	spec.Containers[0].ReadinessProbe, spec.Containers[0].LivenessProbe = spec.Containers[0].LivenessProbe, nil
}

// runningRatio bounds the herd with adaptive, by its time at a limit of 4: 0.80 and 1.08 were measured.
const runningRatio = 1.2

// Of a mixed herd, 15 pods have a probe that kubelet executes each second, for as long as they run: the pods that are
// ready keep the CPUs busy, whatever starts. With adaptive, the rest starts hardly later than at a limit that suits the
// node, and no pod is killed.
func TestPodsThatRunAlreadyDoNotHoldTheRest(t *testing.T) {
	kinds := []mixedKind{
		{"plain", 25, 3, []shape{killedAfter(30 * time.Second)}},
		{"init", 20, 1, []shape{withInit, killedAfter(30 * time.Second)}},
		{"sidecar", 15, 1, []shape{withSidecar, executesProbe}},
		{"unprobed", 15, 1, []shape{withoutProbes}},
		{"sleeper", 15, 0.1, []shape{sleeping("10s"), killedAfter(40 * time.Second)}},
		{"job", 10, 1, []shape{runOnce}},
		{"two", 5, 1, []shape{withSecond}},
		{"crash", 5, 1, []shape{crashing}},
	}
	runs := map[string]mixedRun{}
	for _, limits := range []string{"{maxConcurrent: {value: 4}}", "{adaptive: {}}"} {
		t.Run(limits, func(t *testing.T) {
			d := startDaemonWithRoom(t)
			d.configure(t, "{throttleConfig: "+limits+"}")
			before := readMachine(t)
			runs[limits] = runMixed(t, kinds, 1)
			figure(t, "%s: %s; %s", limits, runs[limits], before.since(t))
		})
	}
	fixed, adaptive := runs["{maxConcurrent: {value: 4}}"], runs["{adaptive: {}}"]
	figure(t, "adaptive %.2f x the time at a limit of 4", adaptive.took.Seconds()/fixed.took.Seconds())
	assert.Zero(t, adaptive.killed, "restarts of pods that do not crash")
	assert.LessOrEqual(t, adaptive.took.Seconds(), runningRatio*fixed.took.Seconds(), "seconds until all are ready or ended")
}
