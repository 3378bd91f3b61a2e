//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// Jobs and bare pods that kubelet never restarts wait in the middle of a herd: none fails because
// it had to wait.
func TestNeverRestartedPods(t *testing.T) {
	const each, limit = 4, 2
	d := startDaemon(t)
	// A pod without probes does not count as started before it has ended: it may burn for longer than the usual settle
	// time on a busy node.
	d.configure(t, "{settleTime: 2m, throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "herd", each, herdPod(1))
	for i := range each {
		createJob(t, ns, fmt.Sprintf("job-%d", i), herdPod(1, runOnce))
		createPod(t, ns, fmt.Sprintf("bare-%d", i), herdPod(1, runOnce))
	}
	eventually(t, "the herd is ready and all others have ended", func() bool {
		done := 0
		for _, p := range pods(t, ns) {
			// Without a readiness probe, a pod is ready as soon as it runs.
			once := p.Spec.RestartPolicy == corev1.RestartPolicyNever
			ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
			if ended || (!once && condition(p, corev1.PodReady)) {
				done++
			}
		}
		return done == 3*each
	})
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Len(t, all, 3*each, "pods: a Job replaces a failed one")
	for _, l := range all {
		assert.NotEqual(t, corev1.PodFailed, l.pod.Status.Phase, "%s: %s %s", l.pod.Name, l.pod.Status.Reason, l.pod.Status.Message)
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
	}
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready or done")
	d.idle(t)
	assert.Positive(t, d.status(t).Refused.Sandbox, "refusals at the sandbox, instead of waits in the gate")
	figure(t, "%d pods, %d of them never restarted, done after %.1f s, none failed", 3*each, 2*each, lastReady(all).Sub(begin).Seconds())
}
