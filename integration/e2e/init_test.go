//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// In a herd of pods with init containers and native sidecars, a start spans all containers of a
// pod, from the first process to ready. No container waits for a turn of its own, because another
// pod could then begin before this one is ready.
func TestHerdWithInitContainersAndSidecars(t *testing.T) {
	const herd, limit, each = 6, 2, 3
	d := startDaemon(t)
	// Slots are not lent: on a busy node, a pod may do nothing for long from one of its containers to the next.
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	ns := namespace(t)
	deploy(t, ns, "herd", herd, herdPod(0.5, withInitAndSidecar))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := wholeStarts(t, ns)
	logLives(t, all[0].started, all)
	assert.Equal(t, limit, mostStarting(t, all), "pods between the start of their first process and ready")
	assert.Len(t, containers(t, ns), herd*each, "every container was created once")
	for _, l := range all {
		for _, c := range append(l.pod.Status.InitContainerStatuses, l.pod.Status.ContainerStatuses...) {
			assert.Zero(t, c.RestartCount, "restarts of %s of %s", c.Name, l.pod.Name)
		}
	}
	figure(t, "%d pods of %d containers each, all ready after %.1f s", herd, each, lastReady(all).Sub(all[0].started).Seconds())
}

// The init containers of a herd wait for the same thing, and slots are lent meanwhile. When it is there, the apps start
// at the limit nevertheless.
func TestAppsWhoseInitContainersWaitedStartAtTheLimit(t *testing.T) {
	const herd, limit = 8, 2
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns, slow := namespace(t), newLatch(t)
	deploy(t, ns, "herd", herd, herdPod(2, slow.holdsInit))
	eventually(t, "all init containers run, most in slots that were lent", func() bool { return len(begun(t, ns)) == herd })
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := startsFrom(t, ns, "app")
	logLives(t, all[0].started, all)
	// One slot may be lent just when the apps come: the daemon measures each start once a second.
	assert.LessOrEqual(t, mostStarting(t, all), limit+1, "pods between the start of their app and ready")
}
