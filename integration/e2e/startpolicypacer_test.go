//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// stragglers is the number of pods of one image in straggler's example.
const stragglers = 24

// straggler's example: of pods of one image, 4 start first, then 16, then all others.
func TestStartPolicyPacesByImage(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	d.enforce(t, "image-pull", `{selector: {terms: [{podSelector: {matchLabels: {staggerimages: "1"}}}]}, groupBy: ".spec.containers[0].image",
  limits: {pacer: {exponential: {minInitial: 4, multiplier: 4, maxStagger: 16}}}}`)
	ns := namespace(t)
	labels, replicas := map[string]string{"staggerimages": "1"}, int32(stragglers)
	begin := time.Now()
	_, err := node.Client().AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "stragglers"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: herdPod(0.2, sleeping("3s"))},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, stragglers) })
	all := lives(t, ns)
	logLives(t, begin, all)
	// When a process began, no more pods were starting than the pacer allows for the number of ready
	// pods. lives reports the time of the pod's probe. kubelet's report of the ready pod reaches the
	// API server a moment later, never before.
	for _, l := range all {
		ready, starting := 0, 0
		for _, other := range all {
			switch {
			case other.ready.Before(l.started):
				ready++
			case !other.started.After(l.started):
				starting++
			}
		}
		if most := allowed(ready); most > 0 {
			assert.LessOrEqual(t, starting, most, "starting pods when %s began, with %d ready pods", l.pod.Name, ready)
		}
	}
	first := 0
	for _, l := range all {
		if l.started.Before(firstReady(all)) {
			first++
		}
	}
	assert.LessOrEqual(t, first, 4, "pods that began before any was ready")
	figure(t, "%d pods of one image: %d before any was ready, all ready after %.1f s", stragglers, first, lastReady(all).Sub(begin).Seconds())
	assert.EqualValues(t, stragglers, d.group(t, "image-pull", lab.HerdImage).Used.Ready)
}

// allowed returns how many pods may be starting for a number of ready pods. 0 means any number.
func allowed(ready int) int {
	switch {
	case ready == 0:
		return 4
	case ready < 16:
		return 4 * ready
	default:
		return 0
	}
}

func firstReady(all []life) time.Time {
	first := all[0].ready
	for _, l := range all {
		if l.ready.Before(first) {
			first = l.ready
		}
	}
	return first
}
