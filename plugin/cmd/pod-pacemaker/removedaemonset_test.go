package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// endingSets is a DaemonSet that is gone some time after it was deleted.
type endingSets struct {
	kube.DaemonSets

	lasts   time.Duration
	deleted time.Time
	how     metav1.DeleteOptions
}

func (s *endingSets) Delete(_ context.Context, _ string, how metav1.DeleteOptions) error {
	s.deleted, s.how = time.Now(), how
	return nil
}

func (s *endingSets) Get(_ context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	if time.Since(s.deleted) < s.lasts {
		return &appsv1.DaemonSet{}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "daemonsets"}, name)
}

func TestRemoveDaemonSetWaitsForTheLastPod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lasts, took time.Duration
		says        string
	}{
		{20 * time.Second, 20 * time.Second, "the DaemonSet ns/set and its pods are gone\n"},
		{time.Hour, 2 * time.Minute, "after 2m0s, pods of the DaemonSet ns/set are still there: on their nodes the daemon's files may stay\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sets, out, began := &endingSets{lasts: c.lasts}, &bytes.Buffer{}, time.Now()
			require.NoError(t, removeDaemonSet(t.Context(), out, sets, "ns/set", "set", 2*time.Minute))
			require.Equal(t, c.says, out.String())
			require.Equal(t, c.took, time.Since(began))
			require.Equal(t, metav1.DeletePropagationForeground, *sets.how.PropagationPolicy)
		})
	}
}
