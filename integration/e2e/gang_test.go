//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// All pods of a gang are bound at once, and those that wait keep their place: the scheduler gives what they request to no
// other pod, and the same pods start later.
func TestAGangKeepsItsPlaces(t *testing.T) {
	const gang = 4
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	advertise(t, gang)
	ns, hold := namespace(t), newLatch(t)
	for i := range gang {
		createPod(t, ns, fmt.Sprintf("gang-%d", i), herdPod(0.1, hold.holds, demanding(device, "1")))
	}
	eventually(t, "all pods of the gang are bound", func() bool {
		for _, p := range pods(t, ns) {
			if p.Spec.NodeName != node.NodeName {
				return false
			}
		}
		return true
	})
	bound := map[string]types.UID{}
	for _, p := range pods(t, ns) {
		bound[p.Name] = p.UID
	}
	createPod(t, ns, "late", herdPod(0.1, demanding(device, "1")))
	eventually(t, "one pod of the gang starts and the others wait", func() bool {
		return len(begun(t, ns)) == 1 && len(d.status(t).Waiting) == gang-1
	})
	unschedulable := func() bool {
		late, err := node.Client().CoreV1().Pods(ns).Get(t.Context(), "late", metav1.GetOptions{})
		require.NoError(t, err)
		for _, c := range late.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return late.Spec.NodeName == ""
			}
		}
		return false
	}
	eventually(t, "the scheduler has no place for another pod", unschedulable)

	hold.release(t)
	for i := range gang {
		awaitReady(t, ns, fmt.Sprintf("gang-%d", i))
	}
	assert.True(t, unschedulable(), "the late pod still has no place")
	var all []life
	for _, l := range lives(t, ns) {
		if uid, ok := bound[l.pod.Name]; ok {
			assert.Equal(t, uid, l.pod.UID, l.pod.Name)
			all = append(all, l)
		}
	}
	assert.Len(t, all, gang)
	assert.Equal(t, 1, mostStarting(t, all), "pods between the start of their process and ready")
	require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), "gang-0", metav1.DeleteOptions{}))
	awaitReady(t, ns, "late")
	assertAllPaced(t, d)
}

// device is an extended resource of the node.
const device = "e2e.pod-pacemaker.io/device"

// advertise gives the node that many devices until the test ends.
func advertise(t *testing.T, devices int) {
	t.Helper()
	patch := func(ctx context.Context, operation string) error {
		const path = `"path": "/status/%s/e2e.pod-pacemaker.io~1device"`
		var all []string
		for _, where := range []string{"capacity", "allocatable"} {
			all = append(all, fmt.Sprintf(`{"op": %q, `+path+`, "value": "%d"}`, operation, where, devices))
		}
		_, err := node.Client().CoreV1().Nodes().Patch(ctx, node.NodeName, types.JSONPatchType, []byte("["+strings.Join(all, ",")+"]"), metav1.PatchOptions{}, "status")
		return err
	}
	require.NoError(t, patch(t.Context(), "add"))
	t.Cleanup(func() { assert.NoError(t, patch(context.Background(), "remove")) })
}

// demanding makes the pod's container request an amount of a resource, and no more.
func demanding(name, amount string) shape {
	return func(spec *corev1.PodSpec) {
		of := corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
		spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: of, Limits: of}
	}
}

// awaitReady waits until a pod is ready.
func awaitReady(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, name+" is ready", func() bool { return isReady(t, ns, name) })
	}
}
