package startuptaint

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

var errNotPaced = errors.New("pods are not paced yet")

const taintKey = "pod-pacemaker.io/not-ready"

// tainted returns a Remover for a node that has another taint, too.
func tainted(t *testing.T) (Remover, *kubefake.Clientset) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	client := kubefake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", ResourceVersion: "7"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "other", Effect: corev1.TaintEffectNoSchedule}, {Key: taintKey, Effect: corev1.TaintEffectNoSchedule},
		}},
	})
	return Remover{
		Client: kubetest.Of(client), Key: taintKey, Paced: func(context.Context) error { return nil }, Log: log,
		Node: func() *corev1.Node {
			object, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", "worker")
			if node, ok := object.(*corev1.Node); ok && err == nil {
				return node
			}
			return nil
		},
	}, client
}

func taints(t *testing.T, client *kubefake.Clientset) []string {
	t.Helper()
	node, err := client.CoreV1().Nodes().Get(context.Background(), "worker", metav1.GetOptions{})
	require.NoError(t, err)
	var keys []string
	for _, taint := range node.Spec.Taints {
		keys = append(keys, taint.Key)
	}
	return keys
}

func TestStartupTaintComesOffOncePodsArePaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taint, client := tainted(t)
		refused := 0
		client.PrependReactor("patch", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			refused++
			return refused == 1, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "worker", nil)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var paced atomic.Bool
		taint.Paced = func(context.Context) error {
			if paced.Load() {
				return nil
			}
			return errNotPaced
		}
		go func() { defer close(done); taint.Run(ctx) }()
		synctest.Wait()
		assert.Equal(t, []string{"other", taintKey}, taints(t, client), "pods are not paced yet")

		paced.Store(true)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"other"}, taints(t, client))
		assert.Equal(t, 2, refused, "the update is tried again after a conflict")
		cancel()
		<-done
	})
}

// The API server may refuse for a long time. The daemon that paced the pods may have lost the runtime meanwhile.
func TestATryThatComesAfterPacingEndedRemovesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taint, client := tainted(t)
		var lost atomic.Bool
		taint.Paced = func(context.Context) error {
			if lost.Load() {
				return errNotPaced
			}
			return nil
		}
		client.PrependReactor("patch", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			return !lost.Swap(true), nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "worker", nil)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		taint.Run(ctx)
		assert.True(t, lost.Load())
		assert.Equal(t, []string{"other", taintKey}, taints(t, client))
	})
}

func TestAStartupTaintThatComesLateOrComesBackIsRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taint, client := tainted(t)
		node := taint.Node().DeepCopy()
		require.NoError(t, client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "worker"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); taint.Run(ctx) }()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Minute)

		_, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(lookEvery)
		synctest.Wait()
		assert.Equal(t, []string{"other"}, taints(t, client), "it came after the daemon was ready")

		_, err = client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		require.NoError(t, err)
		time.Sleep(lookEvery)
		synctest.Wait()
		assert.Equal(t, []string{"other"}, taints(t, client), "it was put back")
		time.Sleep(time.Hour)
		requests := 0
		for _, action := range client.Actions() {
			if action.Matches("patch", "nodes") {
				requests++
			}
		}
		assert.Equal(t, 2, requests, "a node without the taint is left alone")
	})
}

func TestStartupTaintIsTriedUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		taint, client := tainted(t)
		log, logs := logtest.NewNullLogger()
		taint.Log = log
		tries, lost := 0, false
		taint.Paced = func(context.Context) error {
			if tries == 10 && !lost {
				lost = true
				return errNotPaced
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		client.PrependReactor("patch", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			if tries++; tries == 20 {
				cancel()
			}
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "worker", nil)
		})
		taint.Run(ctx)
		assert.Equal(t, 20, tries)
		require.Len(t, logs.AllEntries(), 2, "it is logged once, and again after pods were not paced meanwhile")
		assert.Contains(t, logs.LastEntry().Message, "set startupTaint.enabled")
		assert.Equal(t, []string{"other", taintKey}, taints(t, client))
	})
}

func TestAnIdleDaemonWakesRarely(t *testing.T) {
	t.Parallel()
	assert.GreaterOrEqual(t, lookEvery, time.Second)
}
