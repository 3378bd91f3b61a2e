package policies

import (
	"context"
	"sync"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// awayAPI is an API server that can go away. Its watches end then.
type awayAPI struct {
	*fake.Clientset
	away    atomic.Bool
	watches chan *watch.FakeWatcher
}

// locked is a Matcher with a lock.
type locked struct {
	mu sync.Mutex
	m  *Matcher
}

func (l *locked) SetNamespace(now time.Time, name string, labels map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.SetNamespace(now, name, labels)
}

func (l *locked) SetNamespacesKnown(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.SetNamespacesKnown(now)
}

func (l *locked) setPolicies(policies ...*v1alpha1.StartPolicy) *Changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m.SetPolicies(noon, compiled(policies...))
}

func (l *locked) groups(now time.Time, pod Pod) []throttle.Membership {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.m.Groups(now, pod)
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

func TestEachFaultOfTheNamespaceWatchIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		api := newAwayAPI()
		namespaces := NewNamespaces(kubetest.Of(api), log)
		k := &locked{m: New(newTold(), true)}
		k.setPolicies(policy(t, "teams", byNamespace))
		namespaces.Need()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { namespaces.Run(ctx, k); done <- nil }()
		watching := <-api.watches
		time.Sleep(time.Second) // client-go checks ten times a second whether all namespaces are known
		require.Len(t, k.groups(time.Now(), pod("a", nil, 1)), 1)
		hook.Reset()
		for range 2 { // the API server goes away twice
			api.away.Store(true)
			watching.Stop()
			time.Sleep(time.Hour)
			api.away.Store(false)
			watching = <-api.watches
			synctest.Wait()
			require.Len(t, hook.AllEntries(), 2)
			require.Equal(t, "watching namespaces again", hook.LastEntry().Message)
			hook.Reset()
		}
		cancel()
		require.NoError(t, <-done)
	})
}

func TestThePermissionToWatchNamespacesIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		api := fake.NewClientset()
		for _, verb := range []string{"list", "watch"} {
			api.PrependReactor(verb, "namespaces", func(clienttest.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "", nil)
			})
		}
		namespaces := NewNamespaces(kubetest.Of(api), log)
		namespaces.Need()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		namespaces.Run(ctx, &locked{m: New(newTold(), true)})
		require.Len(t, hook.AllEntries(), 1)
		require.Contains(t, hook.LastEntry().Message, "not allowed to watch namespaces: set startPolicies.namespaceLabels=true")
	})
}

// regrouping counts how often all pods were matched again.
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
	l := &regrouping{told: newTold()}
	k := New(l, true)
	k.SetPolicies(noon, compiled(policy(t, "teams", byNamespace)))
	k.SetNamespacesKnown(noon)
	k.Groups(noon, pod("a", nil, 1))
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
	require.Contains(t, k.namespaces, "shop")
	k.SetNamespace(noon, "shop", nil)
	require.Empty(t, k.namespaces)
}
