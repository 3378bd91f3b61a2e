//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// gateExpired is the metric of the pods that waited in the gate in vain.
const gateExpired = "pod_pacemaker_gate_expired_total"

// retries is how long a slot may be empty because kubelet has to try a pod again: once at the begin, and once at the end.
const retries = 2 * 15 * time.Second

// Starts take longer than a pod can wait in the gate. No pod waits there in vain, so none shows an error.
func TestStartsThatOutlastTheGate(t *testing.T) {
	startsThatOutlastTheGate(t, 6, 30*time.Second, "--gate-timeout", "20s")
}

// startsThatOutlastTheGate runs pods that idle for so long before they are ready, two at a time.
func startsThatOutlastTheGate(t *testing.T, pods int, idle time.Duration, args ...string) {
	t.Helper()
	const limit = 2
	d := startDaemon(t, args...)
	// Pods that idle make no progress, and would be lent slots.
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}, maxWait: 1h, startTimeout: 1h}")
	ns := namespace(t)
	seen, stop := watchLooks(t, ns)
	begin := time.Now()
	deploy(t, ns, "long", int32(pods), herdPod(0, sleeping(idle.String())))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, pods) })
	stop()

	all := lives(t, ns)
	logLives(t, begin, all)
	took, work := lastReady(all).Sub(begin), time.Duration(pods/limit)*idle
	figure(t, "%d pods that idle for %s: all ready after %.1f s, the work takes %s; %v waits expired", pods, idle, took.Seconds(), work, d.metric(t, gateExpired))
	for _, state := range []string{"RunContainerError", "CrashLoopBackOff"} {
		assert.Zero(t, seen.odd[state], state)
	}
	for _, l := range all {
		for _, c := range l.pod.Status.ContainerStatuses {
			assert.Zero(t, c.RestartCount, "restarts of %s", l.pod.Name)
		}
	}
	assert.LessOrEqual(t, mostStarting(all), limit, "pods between the start of their process and ready")
	assert.LessOrEqual(t, took.Seconds(), 1.15*work.Seconds()+retries.Seconds())
}
