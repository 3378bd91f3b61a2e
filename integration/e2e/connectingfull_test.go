//go:build e2e && full

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// The same as TestConnectingDelaysNoPod, with the daemon replaced by a rolling update of its
// DaemonSet.
func TestRollingUpdateDelaysNoPod(t *testing.T) {
	const grace = 3 * time.Minute
	importImage(t, installImage)
	in := installChart(t, nil)
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}}}")
	repeated(t, func(t *testing.T) string {
		stop := stopSlowly(t, d, grace)
		ratio := stop.ratio(t, d, "the DaemonSet updated", func() {
			kubectl(t, "-n", installName, "rollout", "restart", "daemonset/"+installName)
		})
		over := stop.over()
		// The rest of the stop does not matter.
		now := int64(1)
		require.NoError(t, node.Client().CoreV1().Pods(stop.slow).Delete(t.Context(), "slow", metav1.DeleteOptions{GracePeriodSeconds: &now}))
		eventually(t, "pods are paced", func() bool { return d.status(t).Ready })
		if over {
			return "the stop ended before the pods ran"
		}
		return above("ratio of pod starts after a rolling update", ratio, connectRatio)
	})
}

// A pod is deleted with a grace period of years, and then by force: the API server has it no longer, kubelet and containerd
// go on stopping it, and a plugin that registers would block all starts and stops of the node for as long. The same holds
// where the grace period is shortened: kubelet does not shorten the stop. The daemon names the pod, and registers when the
// container has ended.
func TestAPodDeletedByForceDoesNotFreezeTheNode(t *testing.T) {
	for name, grace := range map[string]int64{"by force": 0, "with a shorter grace period": 1} {
		t.Run(name, func(t *testing.T) { deletedAgainIsNotForgotten(t, grace) })
	}
}

func deletedAgainIsNotForgotten(t *testing.T, now int64) {
	t.Helper()
	const years = 100_000_000 * time.Second
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}}}")
	ns := namespace(t)
	createPod(t, ns, "forced", herdPod(0, stubborn(years)))
	eventually(t, "the pod is ready", func() bool { return isReady(t, ns, "forced") })
	api := node.Client().CoreV1().Pods(ns)
	require.NoError(t, api.Delete(t.Context(), "forced", metav1.DeleteOptions{}))
	eventually(t, "kubelet stops it", func() bool { return hasEvent(t, ns, "Killing") })
	require.NoError(t, api.Delete(t.Context(), "forced", metav1.DeleteOptions{GracePeriodSeconds: &now}))
	eventually(t, "that is known", func() bool {
		return !exists(t, ns, "forced") || *getPod(t, ns, "forced").DeletionGracePeriodSeconds == now
	})
	after(t.Context(), 10*time.Second) // the shorter grace period is over

	require.NoError(t, d.Stop(t.Context()))
	d.startUnready(t)
	eventually(t, "the status names it", func() bool {
		return strings.Contains(d.status(t).Runtime.LastError, ns+"/forced for as long as the pod's first grace period")
	})
	createPod(t, ns, "starts", herdPod(0.1))
	eventually(t, "another pod starts", func() bool { return isReady(t, ns, "starts") })
	ids := runningContainers(t, ns, "forced")
	require.Len(t, ids, 1)
	_, err := node.CRI().StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: ids[0]})
	require.NoError(t, err)
	eventually(t, "pods are paced", func() bool { return d.status(t).Ready })
}

// kubelet stops a container for its liveness probe while its pod stays, which the daemon cannot
// know: connecting then holds the node up, but no longer than the pod's grace period. The manual
// states this cost.
func TestWhatConnectingCostsBesideAFailedLivenessProbe(t *testing.T) {
	const grace = 30 * time.Second
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}}}")
	ns := namespace(t)
	before := podsInTurn(t, ns)
	failing := herdPod(0, withoutProbes, stubborn(grace), func(spec *corev1.PodSpec) {
		// The pod listens nowhere, so every probe is refused.
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--port", "0")
		spec.Containers[0].LivenessProbe = probe(corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 1, FailureThreshold: 1})
	})
	createPod(t, ns, "failing", failing)
	eventually(t, "kubelet stops the container", func() bool {
		events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Killing,involvedObject.name=failing"})
		return err == nil && len(events.Items) > 0
	})
	require.NoError(t, d.Kill(t.Context()))
	d.startUnready(t)
	eventually(t, "the daemon is connected", func() bool { return d.status(t).Runtime.Connected })
	took := podsInTurn(t, ns)
	figure(t, "%d pods run after %.1f s, and after %.1f s if the daemon connects while kubelet stops a container for its liveness probe, with a grace period of %s",
		connectRounds, before.Seconds(), took.Seconds(), grace)
	assert.Less(t, took, grace+10*before+10*time.Second, "time until the pods run, bounded by the grace period")
}
