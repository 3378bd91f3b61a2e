//go:build e2e

package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Exempt pods start while a pod holds the only slot, and then three waiting pods start by priority,
// one after the other. The exempt pods are of a DaemonSet, in kube-system and of a critical class.
// The most important waiting pod is created last.
func TestPriorityAndExemptions(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}, exemptions: {daemonSets: {namespaces: ['*']}, criticalPods: {namespaces: ['*']}}}")
	ns, slow := namespace(t), newLatch(t)
	createPod(t, ns, "holds", herdPod(0.1, slow.holds))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	waiting := []string{"high", "usual", "low"}
	for name, value := range map[string]int32{"high": 1000, "low": -1000} {
		priorityClass(t, ns+"-"+name, value)
	}
	for _, name := range []string{"low", "usual", "high"} {
		createPod(t, ns, name, herdPod(0.1, func(spec *corev1.PodSpec) {
			if name != "usual" {
				spec.PriorityClassName = ns + "-" + name
			}
		}))
		eventually(t, name+" waits at the gate", func() bool { return created(t, ns, name) })
	}

	exempt := namespace(t)
	daemonSet(t, exempt, "everywhere", herdPod(0.1))
	createPod(t, exempt, "critical", herdPod(0.1, func(spec *corev1.PodSpec) { spec.PriorityClassName = "system-node-critical" }))
	createPod(t, metav1.NamespaceSystem, exempt, herdPod(0.1))
	t.Cleanup(func() {
		err := node.Client().CoreV1().Pods(metav1.NamespaceSystem).Delete(context.Background(), exempt, metav1.DeleteOptions{})
		assert.NoError(t, err)
	})
	eventually(t, "all exempt pods are ready", func() bool {
		return allReady(t, exempt, 2) && isReady(t, metav1.NamespaceSystem, exempt)
	})
	require.Equal(t, []string{"holds"}, begun(t, ns), "pods that began before the exempt pods were ready")

	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 1+len(waiting)) })
	all := lives(t, ns)
	logLives(t, all[0].started, all)
	var order []string
	for _, l := range all[1:] {
		order = append(order, l.pod.Name)
	}
	assert.Equal(t, waiting, order, "the order of the starts")
	assert.Equal(t, 1, mostStarting(t, all), "pods between the start of their process and ready")
	assertUnharmed(t, all)
}

// priorityClass creates a priority class until the test ends, and waits until the API server admits pods of it: it reads
// the classes from a cache.
func priorityClass(t *testing.T, name string, value int32) {
	t.Helper()
	api := node.Client().SchedulingV1().PriorityClasses()
	never := corev1.PreemptNever
	_, err := api.Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, api.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	spec := herdPod(0)
	spec.PriorityClassName = name
	tried := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "tried-"}, Spec: spec}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	eventually(t, "the API server admits pods of "+name, func() bool {
		_, err := node.Client().CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), tried, dryRun)
		return err == nil
	})
}

// daemonSet creates a DaemonSet.
func daemonSet(t *testing.T, ns, name string, spec corev1.PodSpec) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := node.Client().AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
