//go:build e2e && full

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// kubelet is restarted while the app of a pod waits in the gate beside its sidecar, and while a pod with a sidecar that
// is never restarted waits: the one gets ready, the other ends.
func TestKubeletIsRestartedWhilePodsWithSidecarsWait(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{maxWait: 1h, startTimeout: 20m, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, first, slow := namespace(t), newLatch(t), newLatch(t)
	createPod(t, ns, "always", herdPod(0, withInitAndSidecar, first.holds, func(spec *corev1.PodSpec) {
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--exit", "1")
		withoutProbes(spec)
	}))
	eventually(t, "the app runs", func() bool { return runningIn(t, ns, "always") == 1 })
	createPod(t, ns, "holds", herdPod(0, slow.holdsInit))
	eventually(t, "the next pod waits at the gate", func() bool { return created(t, ns, "holds") })
	first.release(t)
	eventually(t, "its app waits at the gate, beside the sidecar", func() bool { return slices.Contains(begun(t, ns), "holds") && created(t, ns, "always") })
	require.NoError(t, os.Remove(filepath.Join(first.dir, latchFile)))
	createPod(t, ns, "never", herdPod(0.1, withInitAndSidecar, runOnce))
	eventually(t, "the pod that is never restarted waits", func() bool { return len(d.status(t).Waiting) == 2 })
	require.NoError(t, node.Kubelet.Stop(t.Context()))
	require.NoError(t, node.Kubelet.Start(t.Context()))
	eventually(t, "both wait again", func() bool { return !created(t, ns, "always") && len(d.status(t).Waiting) == 2 })
	slow.release(t)
	eventually(t, "the pod that is never restarted has succeeded", func() bool { return getPod(t, ns, "never").Status.Phase == corev1.PodSucceeded })
	eventually(t, "the app runs again", func() bool { return runningIn(t, ns, "always") == 1 })
	assert.Zero(t, restarts(*getPod(t, ns, "never")))
}

// kubelet restarts all containers of a pod because one exited (RestartAllContainers): the pod asks for one turn, with its
// init container, and nothing of it begins before.
func TestAPodWhoseContainersAllRestartWaitsForOneTurn(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{maxWait: 1h, startTimeout: 20m, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, first, slow := namespace(t), newLatch(t), newLatch(t)
	f := follow(t, ns) // kubelet removes the containers
	createPod(t, ns, "all", herdPod(0, withInitAndSidecar, first.holds, func(spec *corev1.PodSpec) {
		always := corev1.ContainerRestartPolicyAlways
		app := &spec.Containers[0]
		app.Args, app.ReadinessProbe, app.RestartPolicy = append(app.Args, "--exit", "42"), nil, &always
		app.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
	}))
	eventually(t, "its app runs", func() bool { return runningIn(t, ns, "all") == 1 })
	createPod(t, ns, "next", herdPod(0, slow.holds))
	eventually(t, "the next pod waits at the gate", func() bool { return created(t, ns, "next") })
	first.release(t)
	eventually(t, "the next pod starts, and the init container waits at the gate", func() bool {
		return slices.Contains(begun(t, ns), "next") && created(t, ns, "all")
	})
	require.NoError(t, os.Remove(filepath.Join(first.dir, latchFile)))
	slow.release(t)
	eventually(t, "its app runs again", func() bool {
		return runningIn(t, ns, "all") == 1 && begins(f, "all", "app") == 2
	})
	var order []string
	for _, c := range f.started() {
		order = append(order, c.name)
	}
	assert.Equal(t, []string{"init", "sidecar", "app", "app", "init", "sidecar", "app"}, order, "in the middle, the app of the next pod")
}

// begins returns how often a container of a pod has begun.
func begins(f *follower, pod, name string) (n int) {
	for _, c := range f.started() {
		if c.pod == pod && c.name == name {
			n++
		}
	}
	return n
}
