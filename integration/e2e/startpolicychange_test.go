//go:build e2e && full

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const oneRuns = `{selector: {terms: [{podSelector: {matchLabels: {part: a}}}]}, bypassSelector: {matchLabels: {urgent: "true"}}, limits: {running: {pods: %d}}%s}`

// A policy is edited and deleted while pods wait: the new limits apply, a bypassing pod
// starts and counts, a finished pod makes room, and a pod outside the policy never waits.
func TestStartPolicyChangesWhilePodsWait(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	d.enforce(t, "one", fmt.Sprintf(oneRuns, 1, ""))
	ns, part := namespace(t), map[string]string{"part": "a"}
	running := func() int { return begunOf(t, ns, "a") + begunOf(t, ns, "urgent") } // by containerd
	ready := func(name string) func() bool { return func() bool { return isReady(t, ns, name) } }
	held := func(name string) func() bool {
		return func() bool { reason, _ := d.waitsFor(t, ns, name); return reason == reasons.PolicyRunning }
	}
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		labelled(t, ns, name, part, herdPod(0.1))
		if name == "a1" {
			eventually(t, "the first pod runs", ready("a1"))
		}
	}
	for _, name := range []string{"a2", "a3", "a4"} {
		eventually(t, name+" waits", held(name))
	}
	createPod(t, ns, "free", herdPod(0.1))
	eventually(t, "a pod outside the policy does not wait", ready("free"))

	labelled(t, ns, "urgent", map[string]string{"part": "a", "urgent": "true"}, herdPod(0.1))
	eventually(t, "a pod that bypasses the policy passes", ready("urgent"))
	assert.Equal(t, 2, running(), "the first pod and the urgent one")

	d.enforce(t, "one", fmt.Sprintf(oneRuns, 3, ""))
	eventually(t, "there is room for one more pod", func() bool { return running() == 3 })
	eventually(t, "it is ready", func() bool { return ready("a2")() || ready("a3")() || ready("a4")() })
	assert.Equal(t, 3, running(), "no other has begun")

	zero := int64(0)
	require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), "a1", metav1.DeleteOptions{GracePeriodSeconds: &zero}))
	eventually(t, "another pod runs in place of the deleted one", func() bool { return begunOf(t, ns, "a1") == 0 && running() == 3 })

	kubectl(t, "delete", "startpolicy", "one")
	for _, name := range []string{"a2", "a3", "a4"} {
		eventually(t, "nothing holds "+name, ready(name))
	}
}

// The limits of an override apply from its begin to its end, without an edit.
func TestStartPolicyOverrideOpensAndCloses(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	begin := time.Now().Add(20 * time.Second).Truncate(time.Second)
	end := begin.Add(time.Minute)
	override := fmt.Sprintf(`, temporaryOverrides: [
  {begin: %q, end: %q, limits: {running: {pods: 2}}}]`, begin.Format(time.RFC3339), end.Format(time.RFC3339))
	d.enforce(t, "window", fmt.Sprintf(oneRuns, 0, override))
	ns, part := namespace(t), map[string]string{"part": "a"}
	for i := range 3 {
		labelled(t, ns, fmt.Sprintf("a%d", i), part, herdPod(0.1))
	}
	eventually(t, "two run", func() bool { return d.group(t, "window", "").Used.Running.Pods == 2 })
	all, err := node.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, pod := range all.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				assert.False(t, c.State.Running.StartedAt.Time.Before(begin), "%s began before the window", pod.Name)
			}
		}
	}
	eventually(t, "the status shows the limits of the window", func() bool {
		s := object[v1alpha1.StartPolicy](t, "startpolicy", "window").Status
		return s.CalculatedLimits != nil && s.CalculatedLimits.Running.Pods != nil && (*s.CalculatedLimits.Running.Pods == 2 || time.Now().After(end))
	})
	eventually(t, "the window is closed", func() bool { return *d.policy(t, "window").Limits.Running.Pods == 0 })
	assert.True(t, time.Now().After(end), "the window closes at its end, not before")
	assert.EqualValues(t, 2, d.group(t, "window", "").Used.Running.Pods, "running pods that count, which continue")
	waiting := 0
	for _, pod := range pods(t, ns) {
		if !condition(pod, corev1.PodReady) {
			waiting++
		}
	}
	assert.Equal(t, 1, waiting)
}
