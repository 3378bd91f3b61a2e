package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// endingSets is a DaemonSet whose pods the garbage collector deletes one after the other. Each ends when it is told to,
// unless its node is down.
type endingSets struct {
	kube.DaemonSets
	kube.Follow

	pods  int
	every time.Duration // between two pods that are told to end
	told  int           // how many the garbage collector tells at most
	down  int           // the first pods, whose nodes are down
	away  error         // why the API server does not list pods
	slow  time.Duration // by how much one call takes longer than another

	deleted time.Time
	how     metav1.DeleteOptions
}

func (s *endingSets) Delete(_ context.Context, _ string, how metav1.DeleteOptions) error {
	s.deleted, s.how = time.Now(), how
	return nil
}

// asked returns how many pods were told to end.
func (s *endingSets) asked() int { return min(int(time.Since(s.deleted)/s.every), s.told) }

func (s *endingSets) Get(_ context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	time.Sleep(time.Duration(time.Now().UnixMilli()%7) * s.slow)
	if s.asked() == s.pods && s.down == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "daemonsets"}, name)
	}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "of the set"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pacing"}}},
	}, nil
}

func (s *endingSets) Each(_ context.Context, opts metav1.ListOptions, f func(runtime.Object)) (string, error) {
	if opts.LabelSelector != "app=pacing" {
		return "", errors.New("not the set's pods: " + opts.LabelSelector)
	}
	f(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "another"}})
	for i := range s.pods {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i)}}
		pod.OwnerReferences = []metav1.OwnerReference{{UID: "of the set", Controller: new(true)}}
		switch {
		case i >= s.asked():
		case i < s.down:
			pod.DeletionTimestamp = &metav1.Time{Time: s.deleted}
		default:
			continue // it has ended
		}
		f(pod)
	}
	return "1", s.away
}

// remove runs the command with a time-out of two minutes, and returns what it wrote and how long it took.
func (s *endingSets) remove(t *testing.T) (said string, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		out, began := &bytes.Buffer{}, time.Now()
		err = removal{sets: s, pods: s, out: out, called: "ns/set", name: "set", timeout: 2 * time.Minute}.run(t.Context())
		said, took = out.String(), time.Since(began)
	})
	assert.Equal(t, metav1.DeletePropagationForeground, *s.how.PropagationPolicy)
	return said, took, err
}

func TestRemoveDaemonSetWaitsForTheLastPod(t *testing.T) {
	t.Parallel()
	said, took, err := (&endingSets{pods: 5000, every: time.Second / 13, told: 5000}).remove(t)
	require.NoError(t, err)
	assert.Equal(t, 385*time.Second, took.Truncate(time.Second))
	assert.True(t, strings.HasPrefix(said, "5000 pods of the DaemonSet ns/set are left\n4870 pods of"), said)
	assert.True(t, strings.HasSuffix(said, "\nthe DaemonSet ns/set and its pods are gone\n"), said)
}

func TestRemoveDaemonSetDoesNotWaitForNodesThatAreDown(t *testing.T) {
	t.Parallel()
	said, took, err := (&endingSets{pods: 9, every: time.Second, told: 9, down: 2}).remove(t)
	require.NoError(t, err)
	assert.Equal(t, countEvery+2*time.Minute, took)
	assert.Contains(t, said, "\n2 pods of the DaemonSet ns/set have not ended for 2m0s: on these nodes the daemon's files may stay: node-0 node-1\n")
}

// Helm removes the rights of the daemons after a success.
func TestRemoveDaemonSetFailsIfPodsAreNotToldToEnd(t *testing.T) {
	t.Parallel()
	_, took, err := (&endingSets{pods: 9, every: time.Second, told: 5, down: 1}).remove(t)
	require.ErrorContains(t, err, "no pod of the DaemonSet ns/set ended for 2m0s, and 4 of 5 were not told to end")
	assert.Equal(t, countEvery+2*time.Minute, took)
}

func TestRemoveDaemonSetFailsIfItCannotCount(t *testing.T) {
	t.Parallel()
	_, took, err := (&endingSets{pods: 9, every: time.Hour, told: 9, away: errors.New("away"), slow: 7 * time.Millisecond}).remove(t)
	require.ErrorContains(t, err, "are left: away")
	assert.InDelta(t, 2*time.Minute, took, float64(time.Second))

	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
	_, took, err = (&endingSets{pods: 9, every: time.Hour, told: 9, away: forbidden}).remove(t)
	require.ErrorContains(t, err, "no role")
	assert.Zero(t, took)
}
