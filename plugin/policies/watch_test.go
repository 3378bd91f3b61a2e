package policies

import (
	"context"
	"slices"
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
)

// awayAPI is an API server that can go away. Its watches end then.
type awayAPI struct {
	*fake.Clientset
	away    atomic.Bool
	watches chan *watch.FakeWatcher
}

// user is a NamespaceUser. It has the present Set.
type user struct {
	mu sync.Mutex
	holder
	sets, changes int // how often it got the labels of namespaces, and how often these were new
}

func newUser() *user { return &user{holder: *newHolder()} }

func (u *user) SetNamespaces(now time.Time, labels map[string]map[string]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sets++
	before := u.Set
	if u.put(u.WithNamespaces(now, labels)); u.Set != before {
		u.changes++
	}
}

func (u *user) setPolicies(inForce ...*v1alpha1.StartPolicy) *Changes {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.set(inForce...)
}

// groups returns in how many groups a pod is.
func (u *user) groups(pod Pod) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.Groups(pod))
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

// watched runs the watch of namespaces for a user with a policy that needs their labels, until stop is called. Before it
// is needed, it asks for nothing. All namespaces are known when watched returns.
func (a *awayAPI) watched(t *testing.T) (u *user, watching *watch.FakeWatcher, hook *logtest.Hook, stop func()) {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	namespaces, u := NewNamespaces(kubetest.Of(a), log), newUser()
	require.False(t, u.setPolicies(policy(t, "t1", throttler)).NeedsNamespaces)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { namespaces.Run(ctx, u); done <- nil }()
	synctest.Wait()
	require.Empty(t, a.Actions())
	require.Nil(t, namespaces.Fault())
	require.True(t, u.setPolicies(policy(t, "teams", byNamespace)).NeedsNamespaces)
	namespaces.Need()
	watching = <-a.watches
	time.Sleep(time.Second) // client-go checks ten times a second whether all namespaces are known
	return u, watching, hook, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestEachFaultOfTheNamespaceWatchIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAwayAPI()
		k, watching, hook, stop := api.watched(t)
		defer stop()
		require.Equal(t, 1, k.groups(pod(nil, 1)))
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
		namespaces.Run(ctx, newUser())
		require.Len(t, hook.AllEntries(), 1)
		require.Contains(t, hook.LastEntry().Message, "not allowed to watch namespaces: set startPolicies.namespaceLabels=true")
		require.Equal(t, "namespaces", namespaces.Fault().What)
	})
}

// The labels of namespaces arrive soon after the policy, as a rule. Until then it holds no pod, which is no fault.
func TestLabelsThatAreUnreadForLongAreReported(t *testing.T) {
	t.Parallel()
	k := newHolder()
	changes := k.set(policy(t, "teams", byNamespace), policy(t, "others", byNamespace))
	require.Equal(t, namespacesUnread, k.State()[0].Fault)
	require.Empty(t, changes.Faults)
	require.Equal(t, noon.Add(unreadFor), k.Next())
	_, changes = k.Advance(noon.Add(unreadFor - 1))
	require.Nil(t, changes)
	changes = k.put(k.Advance(noon.Add(unreadFor)))
	require.Equal(t, map[string]string{"teams": namespacesUnread, "others": namespacesUnread}, changes.Faults)
	require.Zero(t, k.Next())
	_, changes = k.WithPolicies(noon.Add(2*unreadFor), Compile([]*v1alpha1.StartPolicy{policy(t, "teams", byNamespace)}))
	require.Empty(t, changes.Faults, "it is reported once")
	require.Equal(t, []string{"others"}, changes.Gone)
	changes = k.put(k.WithNamespaces(noon.Add(2*unreadFor), nil))
	require.Equal(t, []string{"others", "teams"}, slices.Sorted(slices.Values(changes.Evaluated)))
}

func TestANamespaceIsFollowed(t *testing.T) {
	t.Parallel()
	k, a := newHolder(), pod(nil, 1)
	k.set(policy(t, "teams", byNamespace))
	require.Equal(t, namespacesUnread, k.State()[0].Fault)
	changes := k.put(k.WithNamespaces(noon, nil))
	require.Empty(t, changes.Evaluated, "nobody was told that they were not read")
	require.Empty(t, k.Groups(a))
	shop := func(labels map[string]string) map[string]map[string]string {
		return map[string]map[string]string{"shop": labels}
	}
	k.put(k.WithNamespaces(noon, shop(map[string]string{"team": "a"})))
	require.Len(t, k.Groups(a), 1)
	same, changes := k.WithNamespaces(noon, shop(map[string]string{"team": "a"}))
	require.Same(t, k.Set, same)
	require.Nil(t, changes)
	k.put(k.WithNamespaces(noon, shop(map[string]string{"team": "b"})))
	require.Empty(t, k.Groups(a))
	k.put(k.WithNamespaces(noon, shop(map[string]string{"team": "a"})))
	k.put(k.WithNamespaces(noon, nil))
	require.Empty(t, k.Groups(a))
}

// The labels of all namespaces come at once, and later with each change of labels, but not with other changes.
func TestNamespacesAreReportedWhenAllAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newAwayAPI()
		require.NoError(t, api.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
		u, watching, _, stop := api.watched(t)
		defer stop()
		reported := func(sets, groups int) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, groups, u.groups(pod(nil, 1)))
			u.mu.Lock()
			defer u.mu.Unlock()
			require.Equal(t, sets, u.sets)
			require.Equal(t, sets, u.changes)
		}
		reported(1, 1)
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "2", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"new": "x"}}}
		watching.Modify(shop.DeepCopy())
		reported(1, 1)
		shop.Labels["team"] = "b"
		watching.Modify(shop.DeepCopy())
		reported(2, 0)
		shop.Labels["team"] = "a"
		watching.Modify(shop.DeepCopy())
		reported(3, 1)
		watching.Delete(shop)
		reported(4, 0)
	})
}
