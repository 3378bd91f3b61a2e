//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// preemptionWaiting pods wait at the gate, as many as it holds with one slot. Together
	// they request all CPU of the node.
	preemptionWaiting = 3
	// preemptionVictims of them kubelet must preempt for the critical pod, one by one.
	preemptionVictims = 2
	// preemptionGivesUp is how long kubelet waits for the end of a victim, if one and a half
	// times its grace period is less.
	preemptionGivesUp = 10 * time.Second
)

// What kubelet logs of a preemption, before the pod.
const (
	preemptionDone   = `"Pod evicted successfully" pod="`
	preemptionFailed = `"Failed to evict pod" err="timeout waiting to kill pod" pod="`
)

var preemptionLines = regexp.MustCompile(`"(Pod evicted successfully|Failed to evict pod|Preempting pod to free up resources)"`)

// kubelet preempts pods that wait at the gate, because a critical pod of its node does not
// fit beside them: with the rights that are shipped the daemon ends their waits, nothing of
// them starts, and kubelet accepts the critical pod at once. Without the one to read events
// kubelet waits for the end of each in vain, and accepts no pod at all meanwhile.
func TestKubeletPreemptsPodsThatWait(t *testing.T) {
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil), "the node is as it was") })
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) {
		// So that nobody's wait is over for its length, however slow this goes.
		config["runtimeRequestTimeout"] = "30m"
	}))
	t.Run("with the right", preemptsWatched)
	t.Run("without the right", preemptsUnwatched)
}

// shares gives the CPU that so many of the pods that wait request.
func shares(t *testing.T, pods int64) string {
	t.Helper()
	n, err := node.Client().CoreV1().Nodes().Get(t.Context(), node.NodeName, metav1.GetOptions{})
	require.NoError(t, err)
	return fmt.Sprintf("%dm", pods*(n.Status.Allocatable.Cpu().MilliValue()/preemptionWaiting))
}

// bound binds a pod to the node past the scheduler, which would preempt by itself.
func bound(spec *corev1.PodSpec) { spec.NodeName = node.NodeName }

// critical makes a pod one for which kubelet preempts others.
func critical(spec *corev1.PodSpec) { spec.PriorityClassName = "system-node-critical" }

// fullNodeAtGate makes a pod that takes the slot and others that wait for it, and that
// request all CPU. Those have this grace period, and two containers: kubelet goes on with
// the second when the first has not started.
func fullNodeAtGate(t *testing.T, d *daemon, grace int64) (starting, waiting string) {
	t.Helper()
	d.configure(t, "{maxWait: 30m, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 30m}, startTimeout: 30m, exemptions: {criticalPods: {namespaces: ['*']}}}")
	starting, waiting = namespace(t), namespace(t)
	createPod(t, starting, "starting", herdPod(0, sleeping("1h")))
	eventually(t, "the slot is held", func() bool {
		return len(d.status(t).Starting) == 1 && runningIn(t, starting, "") == 1
	})
	cpu := shares(t, 1)
	for _, name := range []string{"waits-0", "waits-1", "waits-2"} {
		createPod(t, waiting, name, herdPod(0, requesting("cpu", cpu), bound, func(spec *corev1.PodSpec) {
			spec.TerminationGracePeriodSeconds = &grace
			beside := *spec.Containers[0].DeepCopy()
			beside.Name, beside.ReadinessProbe, beside.Resources = "beside", nil, corev1.ResourceRequirements{}
			spec.Containers = append(spec.Containers, beside)
		}))
	}
	eventually(t, "the others wait at the gate", func() bool { return d.status(t).Gate.Waiters == preemptionWaiting })
	return starting, waiting
}

// accepted gives a pod once kubelet has accepted it, and how long after begin that was.
func accepted(t *testing.T, ns, name string, begin time.Time) (p *corev1.Pod, took time.Duration) {
	t.Helper()
	eventually(t, "kubelet has accepted "+name, func() (done bool) {
		var err error
		p, err = node.Client().CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		took = time.Since(begin)
		return p.Status.StartTime != nil
	})
	require.NotEqual(t, corev1.PodFailed, p.Status.Phase, "%s: %s", p.Status.Reason, p.Status.Message)
	return p, took
}

func preemptsWatched(t *testing.T) {
	d := evictionDaemon(t, asServiceAccount(t))
	// kubelet waits long for the end of a victim, in which nothing runs: this must not take so long.
	starting, ns := fullNodeAtGate(t, d, 60)
	said, begin := logSize(t, node.Kubelet), time.Now()
	createPod(t, starting, "critical", herdPod(0, requesting("cpu", shares(t, preemptionVictims)), bound, critical))
	_, took := accepted(t, starting, "critical", begin)
	log := logSince(t, node.Kubelet, said)
	logLines(t, log, preemptionLines)
	figure(t, "kubelet preempted %d pods at the gate and accepted the critical pod in %.1f s", strings.Count(log, preemptionDone+ns+"/"), took.Seconds())
	assert.Equal(t, preemptionVictims, strings.Count(log, preemptionDone+ns+"/"))
	assert.NotContains(t, log, preemptionFailed)

	for _, p := range pods(t, ns) {
		if !strings.Contains(log, preemptionDone+ns+"/"+p.Name+`"`) {
			continue
		}
		assertTakenDown(t, d, p, "Preempting", "Preempted", "kubelet preempts the pod")
	}
	assert.InDelta(t, preemptionVictims, d.metric(t, `pod_pacemaker_start_seconds_count{reason="Preempted"}`), 0)
	eventually(t, "the critical pod runs", func() bool { return runningIn(t, starting, "critical") == 1 })
	eventually(t, "no hook of theirs is left", func() bool {
		s := d.status(t)
		return s.Gate.Waiters == preemptionWaiting-preemptionVictims && len(s.Waiting) == s.Gate.Waiters
	})
}

// preemptsUnwatched has kubelet try in vain.
func preemptsUnwatched(t *testing.T) {
	access := asServiceAccount(t)
	kubectl(t, "delete", "clusterrolebinding", "pod-pacemaker-evictions")
	d := evictionDaemon(t, access)
	starting, ns := fullNodeAtGate(t, d, 1)
	said, begin := logSize(t, node.Kubelet), time.Now()
	createPod(t, starting, "critical", herdPod(0, requesting("cpu", shares(t, preemptionVictims)), bound, critical))
	eventually(t, "the daemon says what it may not", func() bool {
		return strings.Count(d.logged(t), "for want of the right to list and watch events (evictions.watch of the chart brings it)") == 1
	})
	createPod(t, starting, "beside", herdPod(0, bound, critical)) // it requests nothing, and waits for nobody at the gate
	asked := time.Now()
	p, took := accepted(t, starting, "critical", begin)
	log := logSince(t, node.Kubelet, said)
	beside, tookBeside := accepted(t, starting, "beside", asked)
	logLines(t, log, preemptionLines)
	figure(t, "kubelet gave up %d pods at the gate and accepted the critical pod in %.1f s; another had to wait %.1f s for it",
		strings.Count(log, preemptionFailed+ns+"/"), took.Seconds(), tookBeside.Seconds())
	assert.Equal(t, preemptionVictims, strings.Count(log, preemptionFailed+ns+"/"))
	assert.NotContains(t, log, preemptionDone)
	assert.GreaterOrEqual(t, took, preemptionVictims*preemptionGivesUp)
	assert.False(t, beside.Status.StartTime.Before(p.Status.StartTime), "kubelet accepts nobody meanwhile")
	assert.Equal(t, preemptionWaiting, d.status(t).Gate.Waiters, "all wait still")
}
