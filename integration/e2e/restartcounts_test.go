//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// A restart of kubelet or containerd costs each pod that waits in the gate one restart, whether its
// policy is Always or OnFailure, and the starting pod none. A Job that allows no failure, whose pod would be
// restarted, does not fail: its pod waits by refusal.
func TestRestartCounts(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, slow := namespace(t), newLatch(t)
	// A restarted kubelet cannot report this pod ready before it has probed it, because its init container still runs. Of
	// other pods it does: see TestKubeletIsRestartedWhileAPodStarts.
	createPod(t, ns, "holds", herdPod(0, slow.holdsInit))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure}
	waiting := []string{"always", "on-failure"}
	for i, name := range waiting {
		createPod(t, ns, name, herdPod(0.1, func(spec *corev1.PodSpec) { spec.RestartPolicy = policies[i] }))
		eventually(t, name+" waits at the gate", func() bool { return created(t, ns, name) })
	}
	jobs := namespace(t)
	createJob(t, jobs, "job", herdPod(0.1, runOnce, func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyOnFailure }))
	eventually(t, "the pod of the Job waits as well", func() bool { return len(d.status(t).Waiting) == len(waiting)+1 })
	for i, part := range []*lab.Service{node.Kubelet, node.Containerd} {
		require.NoError(t, part.Stop(t.Context()))
		require.NoError(t, part.Start(t.Context()))
		for _, name := range waiting {
			eventually(t, name+" waits at the gate again", func() bool { return attempt(t, ns, name) > i && created(t, ns, name) })
		}
		figure(t, "%s was restarted: attempts %d and %d", part.Name(), attempt(t, ns, waiting[0]), attempt(t, ns, waiting[1]))
	}
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 1+len(waiting)) })
	for _, p := range pods(t, ns) {
		want := int32(2)
		if p.Name == "holds" {
			want = 0
		}
		assert.Equal(t, want, restarts(p), "restarts of %s", p.Name)
	}
	eventually(t, "the Job has ended", func() bool {
		job, err := node.Client().BatchV1().Jobs(jobs).Get(t.Context(), "job", metav1.GetOptions{})
		require.NoError(t, err)
		return len(job.Status.Conditions) > 0
	})
	require.Equal(t, 1, doneOf(t, jobs), "the Job has succeeded")
	assert.Zero(t, restarts(pods(t, jobs)[0]), "restarts of the Job's pod")
	all := lives(t, ns)
	logLives(t, all[0].started, all)
	assert.Equal(t, 1, mostStarting(t, all), "pods between the start of their process and ready")
	d.idle(t)
}

// attempt returns the number of the last container that kubelet created for a pod. The first is 0,
// and -1 means none.
func attempt(t *testing.T, ns, pod string) int {
	t.Helper()
	last := -1
	for _, c := range listed(t, ns) {
		if c.Labels["io.kubernetes.pod.name"] == pod {
			last = max(last, int(c.Metadata.Attempt))
		}
	}
	return last
}
