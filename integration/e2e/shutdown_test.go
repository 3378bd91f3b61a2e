//go:build e2e && full

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shutdownRatio bounds how much longer all pods of a node may take to end than without the daemon.
// It allows for the differences between any two measurements.
const shutdownRatio = 1.2

// A node is drained, half by eviction and half by deletion with a grace period, as kubelet shuts
// pods down: waiting pods end without a start, and as soon as without the daemon. A try that is too
// slow is repeated, both with and without the daemon.
func TestPodsThatWaitEndInAShutdown(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		with, without := shutdowns(t)
		ratio := with.Seconds() / without.Seconds()
		figure(t, "%d waiting pods are gone after %.1f s, after %.1f s without the daemon, ratio %.2f",
			crowded, with.Seconds(), without.Seconds(), ratio)
		return above("the ratio", ratio, shutdownRatio)
	})
}

// shutdowns returns how long it takes to end waiting pods, and the same pods without the daemon.
func shutdowns(t *testing.T) (with, without time.Duration) {
	t.Helper()
	ns := namespace(t)
	createMany(t, ns)
	eventually(t, "all run", func() bool { return runningIn(t, ns, "ends-") == crowded })
	eventually(t, "kubelet reports all starts", func() bool { return startedIn(t, ns) == crowded })
	without = endAll(t, ns)

	d := startDaemon(t, placesForAll...)
	hold(t, d, namespace(t), newLatch(t).holds)
	waiting := namespace(t)
	createMany(t, waiting)
	eventually(t, "all pods wait at the gate", func() bool { return d.status(t).Gate.Waiters == crowded })
	with = endAll(t, waiting)
	assert.Zero(t, startedIn(t, waiting), "starts of waiting pods that kubelet reports")
	assertAllPaced(t, d)
	eventually(t, "no deleted pod is in the queue", func() bool { return len(d.status(t).Waiting) == 0 })
	assert.Len(t, d.status(t).Starting, crowdLimit, "starts of the pods that were not deleted")
	eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
	return with, without
}

// createMany creates bare pods that take long to get ready.
func createMany(t *testing.T, ns string) {
	t.Helper()
	for i := range crowded {
		createPod(t, ns, fmt.Sprintf("ends-%d", i), herdPod(0, sleeping("1h")))
	}
}

// endAll ends all pods of a namespace, and returns how long that takes.
func endAll(t *testing.T, ns string) time.Duration {
	t.Helper()
	begin := time.Now()
	api := node.Client().CoreV1().Pods(ns)
	for i, p := range pods(t, ns) {
		if i%2 == 0 {
			require.NoError(t, api.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}))
		} else {
			require.NoError(t, api.Delete(t.Context(), p.Name, metav1.DeleteOptions{}))
		}
	}
	watched(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	return time.Since(begin)
}
