//go:build e2e && full

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// A kubelet that is restarted while a pod starts reports it ready before it probes it: one pod more
// than the limit then starts, and the others wait for their turn.
func TestKubeletIsRestartedWhileAPodStarts(t *testing.T) {
	for name, c := range map[string]struct {
		starts corev1.PodSpec
		runs   time.Duration // runtime of the pod before kubelet restarts
	}{
		// kubelet takes the report back within 10 s, when its probe worker begins.
		"a young container with a readiness probe": {herdPod(0.1, sleeping("40s"), slowlyProbed), 0},
		// kubelet never takes the report back: https://github.com/kubernetes/kubernetes/issues/142305
		"an older container with a startup probe": {herdPod(40, withoutProbes, withStartup), 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDaemon(t)
			ns := namespace(t)
			d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 10m}}")
			createPod(t, ns, "first", c.starts)
			eventually(t, "the first pod runs", func() bool {
				statuses := pods(t, ns)[0].Status.ContainerStatuses
				return len(statuses) == 1 && statuses[0].State.Running != nil && time.Since(statuses[0].State.Running.StartedAt.Time) > c.runs
			})
			require.NoError(t, node.Kubelet.Stop(t.Context()))
			require.NoError(t, node.Kubelet.Start(t.Context()))
			for _, name := range []string{"next", "third"} {
				createPod(t, ns, name, herdPod(4))
			}
			var said time.Time
			eventually(t, "kubelet reports the first pod ready", func() bool {
				said = time.Now()
				return isReady(t, ns, "first")
			})
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 3) })

			var all []life
			var first life
			eventually(t, "the first pod logs that it serves", func() bool {
				all = lives(t, ns)
				first = all[slices.IndexFunc(all, func(l life) bool { return l.pod.Name == "first" })]
				return !first.served.IsZero()
			})
			logLives(t, said, all)
			assert.LessOrEqual(t, mostStarting(t, all), 2, "pods between the start of their process and ready, with a limit of 1")
			figure(t, "%s: kubelet reported the pod ready %.1f s too early; %d started at a time with a limit of 1",
				name, first.served.Sub(said).Seconds(), mostStarting(t, all))
		})
	}
}

// slowlyProbed sets the readiness probe's period to ten seconds, the default.
func slowlyProbed(spec *corev1.PodSpec) {
	spec.Containers[0].ReadinessProbe = probe(corev1.Probe{FailureThreshold: 1})
}
