//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Bounds of how the daemon behaves beside pods that containerd cannot list to it.
const (
	largeNamedWithin = 10 * time.Second
	largeOverWithin  = time.Minute
)

// Three pods of eight containers have 1.1 MB of environment for each container, and nothing else
// runs: a containerd that lists them to a plugin ends. The daemon warns of them when they are made,
// and does not register beside them; containerd never ends. Pods are paced again when they are gone.
func TestPodsTooLargeToListEndNoRuntime(t *testing.T) { doNotEndTheRuntime(t, 0) }

// doNotEndTheRuntime creates the three large pods beside others and replaces the daemon.
func doNotEndTheRuntime(t *testing.T, others int) {
	t.Helper()
	const large, each = 3, 8
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}}}")
	runtime := node.Containerd.PID()
	ns := namespace(t)
	for i := range others {
		createPod(t, ns, fmt.Sprint("other-", i), herdPod(0, withoutProbes))
	}
	runs := func(pod string) int { return len(runningContainers(t, ns, pod)) }
	eventually(t, "the other pods run", func() bool {
		for i := range others {
			if runs(fmt.Sprint("other-", i)) != 1 {
				return false
			}
		}
		return true
	})
	largeEnvironments(t, ns, "first", "second")
	for i := range large {
		createPod(t, ns, fmt.Sprint("large-", i), herdPod(0, withoutProbes, largeContainers(each, "first", "second")))
	}
	eventually(t, "the large pods run", func() bool {
		for i := range large {
			if runs(fmt.Sprint("large-", i)) != each {
				return false
			}
		}
		return true
	})
	assert.GreaterOrEqual(t, d.metric(t, "pod_pacemaker_large_environments_total"), float64(large*each))
	eventually(t, "an event on the pod warns of it", func() bool { return hasEvent(t, ns, "LargeEnvironment") })

	require.NoError(t, d.Stop(t.Context()))
	began := time.Now()
	d.startUnready(t)
	eventually(t, "the status names the pods", func() bool {
		return strings.Contains(d.status(t).Runtime.LastError, ns+"/large-")
	})
	named := time.Since(began)
	assert.InDelta(t, 1, d.metric(t, `pod_pacemaker_registration_waits{reason="ListingTooLarge"}`), 0)
	assert.Contains(t, d.logged(t), ns+"/large-")
	_, err := readyz(t.Context(), d.http)
	require.Error(t, err)
	assert.NotContains(t, d.status(t).NotReady, ns, "every process of the node may read this")
	eventually(t, "the PacemakerNode says it", func() bool {
		n := object[v1alpha1.PacemakerNode](t, "pacemakernode", node.NodeName)
		ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Status == metav1.ConditionFalse && strings.Contains(ready.Message, "largest pods and containers")
	})
	eventually(t, "an event on the node says it", func() bool { return hasEvent(t, "default", "ListingTooLarge") })
	assert.Equal(t, runtime, node.Containerd.PID(), "containerd ended")

	began = time.Now()
	for i := range large {
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), fmt.Sprint("large-", i), metav1.DeleteOptions{}))
	}
	eventually(t, "pods are paced", func() bool { return d.status(t).Ready })
	back := time.Since(began)
	assert.Equal(t, runtime, node.Containerd.PID(), "containerd ended")
	figure(t, "beside %d others, 3 pods of 8 containers with 1.1 MB of environment are named after %.1f s (status %d at /readyz), and pods are paced %.1f s after their deletion",
		others, named.Seconds(), http.StatusServiceUnavailable, back.Seconds())
	assert.Less(t, named, largeNamedWithin)
	assert.Less(t, back, largeOverWithin)
}

// largeEnvironments makes ConfigMaps with 550 kB of variables each.
func largeEnvironments(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		data := map[string]string{}
		for i := range 11 { // the kernel takes at most 128 KiB in one variable
			data[fmt.Sprintf("%s_%d", name, i)] = strings.Repeat("x", 50_000)
		}
		_, err := node.Client().CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// largeContainers gives the pod this many containers with the variables of these ConfigMaps.
func largeContainers(count int, configMaps ...string) shape {
	return func(spec *corev1.PodSpec) {
		c := spec.Containers[0]
		c.Args = append(c.Args, "--port", "0") // they share the pod's network
		for _, name := range configMaps {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
		}
		spec.Containers = nil
		for i := range count {
			c.Name = fmt.Sprint("app-", i)
			spec.Containers = append(spec.Containers, c)
		}
	}
}

// hasEvent reports whether a namespace has an event with this reason.
func hasEvent(t *testing.T, ns, reason string) bool {
	t.Helper()
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
	return err == nil && len(events.Items) > 0
}

// object reads an object from the API server.
func object[T any](t *testing.T, kind, name string) (read T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(kubectl(t, "get", kind, name, "-o", "json")), &read))
	return read
}
