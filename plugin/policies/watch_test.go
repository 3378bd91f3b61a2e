package policies

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// awayAPI is an API server that can go away; its watches end then.
type awayAPI struct {
	*fake.Clientset
	away    atomic.Bool
	watches chan *watch.FakeWatcher
}

func newAwayAPI() *awayAPI {
	a := &awayAPI{
		Clientset: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}}),
		watches:   make(chan *watch.FakeWatcher, 100),
	}
	refused := apierrors.NewServiceUnavailable("it is away")
	a.PrependReactor("list", "namespaces", func(clienttest.Action) (bool, runtime.Object, error) {
		return a.away.Load(), nil, refused
	})
	a.PrependWatchReactor("namespaces", func(clienttest.Action) (bool, watch.Interface, error) {
		if a.away.Load() {
			return true, nil, refused
		}
		w := watch.NewFake()
		a.watches <- w
		return true, w, nil
	})
	return a
}

func TestNamespacesThatCannotBeWatchedAgainAreSaidAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		api := newAwayAPI()
		namespaces := NewNamespaces(kubetest.Of(api), log)
		k := New(Options{Limiter: newTold(), Log: log, WatchNamespaces: namespaces.Need})
		k.SetPolicies(time.Now(), []*v1alpha1.StartPolicy{policy(t, "teams", byNamespace)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { namespaces.Run(ctx, k); done <- nil }()
		open := <-api.watches
		time.Sleep(time.Second) // client-go asks ten times a second whether all are known
		require.Len(t, k.See(time.Now(), pod("a", nil, 1)), 1)
		hook.Reset()
		for range 2 { // in spring and in autumn
			api.away.Store(true)
			open.Stop()
			time.Sleep(time.Hour)
			api.away.Store(false)
			open = <-api.watches
			synctest.Wait()
			require.Len(t, hook.AllEntries(), 2)
			require.Equal(t, "watching namespaces again", hook.LastEntry().Message)
			hook.Reset()
		}
		cancel()
		require.NoError(t, <-done)
	})
}

// regrouping counts how often all pods were matched anew.
type regrouping struct {
	*told
	times int
}

func (r *regrouping) SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups) {
	r.times++
	r.told.SetPolicies(now, limits, pods...)
}

func TestANamespaceIsFollowed(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	l := &regrouping{told: newTold()}
	k := New(Options{Limiter: l, Log: log, WatchNamespaces: func() {}})
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "teams", byNamespace)})
	k.SetNamespacesKnown(noon, "")
	k.See(noon, pod("a", nil, 1))
	require.Empty(t, l.groups["a"])
	labels := map[string]string{"team": "a"}
	k.SetNamespace(noon, "shop", labels)
	require.Len(t, l.groups["a"], 1)
	labels["team"] = "b"
	k.SetNamespace(noon, "shop", labels)
	require.Empty(t, l.groups["a"], "the Matcher has its own copy")
	k.SetNamespace(noon, "shop", map[string]string{"team": "a"})
	require.Len(t, l.groups["a"], 1)
	k.SetNamespace(noon, "shop", nil)
	require.Empty(t, l.groups["a"])
	k.SetNamespace(noon, "shop", map[string]string{})
	require.Contains(t, k.namespaces.labels, "shop")
	k.SetNamespace(noon, "shop", nil)
	require.Empty(t, k.namespaces.labels)
}
