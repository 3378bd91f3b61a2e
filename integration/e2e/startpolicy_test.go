//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// enforce creates or changes a StartPolicy, which the test removes, and waits until it is in force.
func (d *daemon) enforce(t *testing.T, name, spec string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	yaml := fmt.Sprintf("apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: %s}\nspec: %s\n", name, spec)
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	before := d.policy(t, name)
	kubectl(t, "apply", "-f", file)
	if before.Name == "" {
		t.Cleanup(func() {
			out, err := node.Kubectl(context.Background(), "delete", "startpolicy", name, "--ignore-not-found")
			assert.NoError(t, err, "%s", out)
		})
	}
	generation := object[v1alpha1.StartPolicy](t, "startpolicy", name).Generation
	eventually(t, "the policy is in force", func() bool { return d.policy(t, name).Generation == generation })
}

// policy returns the daemon's report on a policy. Its name is empty if the daemon does not know the
// policy.
func (d *daemon) policy(t *testing.T, name string) admin.Policy {
	t.Helper()
	for _, p := range d.status(t).Policies {
		if p.Name == name {
			return p
		}
	}
	return admin.Policy{}
}

// group returns the daemon's report on a group of a policy.
func (d *daemon) group(t *testing.T, policy, group string) v1alpha1.PolicyGroup {
	t.Helper()
	for _, g := range d.policy(t, policy).Groups {
		if g.Group == group {
			return g
		}
	}
	return v1alpha1.PolicyGroup{}
}

// requesting makes the pod's container request an amount of a resource.
func requesting(name, amount string) shape {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
}

// labelled creates a bare pod with labels.
func labelled(t *testing.T, namespace, name string, labels map[string]string, spec corev1.PodSpec) {
	t.Helper()
	_, err := node.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// waitsFor returns what a pod waits for, or nothing if it does not wait.
func (d *daemon) waitsFor(t *testing.T, namespace, name string) (reason reasons.Reason, detail string) {
	t.Helper()
	for _, p := range d.status(t).Waiting {
		if p.Namespace == namespace && p.Name == name && p.Held != nil {
			return p.Reason, p.Held.Detail
		}
	}
	return "", ""
}

// The walk-through of kube-throttler's documentation gives the same results with a StartPolicy. The
// threshold is 200m CPU and 1Gi. pod1 requests 200m and runs. pod2 requests 300m and waits. pod1m
// requests only memory and runs. The threshold is raised to 700m, and pod2 runs. pod3 requests 300m
// of the remaining 200m, and waits.
func TestStartPolicyWalkThrough(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	threshold := func(cpu string) string {
		return `{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]},
  limits: {running: {pods: 5, requests: {cpu: ` + cpu + `, memory: 1Gi}}}}`
	}
	d.enforce(t, "t1", threshold("200m"))
	ns, of := namespace(t), map[string]string{"throttle": "t1"}
	pod := func(name, resource, amount string) {
		labelled(t, ns, name, of, herdPod(0.1, requesting(resource, amount)))
	}
	ready := func(name string) func() bool { return func() bool { return isReady(t, ns, name) } }
	waits := func(name string) func() bool {
		return func() bool {
			reason, _ := d.waitsFor(t, ns, name)
			return reason == reasons.PolicyRunning || reason == reasons.Unadmittable
		}
	}

	pod("pod1", "cpu", "200m")
	eventually(t, "pod1 runs", ready("pod1"))
	assert.Equal(t, []string{"running.requests.cpu"}, d.group(t, "t1", "").Throttled)

	pod("pod2", "cpu", "300m")
	eventually(t, "pod2 waits", waits("pod2"))
	assert.Contains(t, d.why(t, ns, "pod2"), "policy t1")

	pod("pod1m", "memory", "512Mi")
	eventually(t, "pod1m runs: memory is not throttled", ready("pod1m"))
	assert.False(t, isReady(t, ns, "pod2"))
	used := d.group(t, "t1", "").Used.Running
	assert.Equal(t, v1alpha1.PodUse{Pods: 2, Requests: map[string]v1alpha1.UsedQuantity{"cpu": "200m", "memory": "512Mi"}}, used)
	eventually(t, "the policy's status shows the group", func() bool {
		s := object[v1alpha1.StartPolicy](t, "startpolicy", "t1").Status
		return s.Waiting == 1 && s.Used.Running.Pods == 2
	})
	s := object[v1alpha1.StartPolicy](t, "startpolicy", "t1").Status
	assert.Equal(t, []string{"running.requests.cpu"}, s.Throttled)
	assert.EqualValues(t, "200m", s.Used.Running.Requests["cpu"])
	assert.True(t, meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady))
	t.Log("\n" + kubectl(t, "get", "startpolicies"))
	assert.InDelta(t, 0.2, d.metric(t, `pod_pacemaker_policy_used{limit="running",policy="t1",resource="cpu"}`), 1e-9)
	assert.InDelta(t, 1, d.metric(t, `pod_pacemaker_policy_throttled{limit="running",policy="t1",resource="cpu"}`), 0)

	d.enforce(t, "t1", threshold("700m"))
	eventually(t, "pod2 runs", ready("pod2"))
	assert.Empty(t, d.group(t, "t1", "").Throttled, "no limit of the group is reached: 200m are left")

	pod("pod3", "cpu", "300m")
	eventually(t, "pod3 waits: 200m do not suffice", waits("pod3"))
	eventually(t, "its event names the policy", func() bool {
		return strings.Contains(kubectl(t, "get", "events", "-n", ns, "--field-selector", "involvedObject.name=pod3"), "policy t1")
	})
	assert.False(t, isReady(t, ns, "pod3"))
}
