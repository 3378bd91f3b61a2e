package report

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// nodeObject is the PacemakerNode that tells this.
func nodeObject(t *testing.T, status v1alpha1.PacemakerNodeStatus) *unstructured.Unstructured {
	t.Helper()
	at := metav1.NewTime(time.Now())
	status.Written = &at
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.PacemakerNode{
		ObjectMeta: metav1.ObjectMeta{Name: status.NodeName}, Status: status,
	})
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeKind))
	return u
}

func configObject(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "uid": "uid-of-" + name}}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	return u
}

func statusIn(t *testing.T, api *dynamicfake.FakeDynamicClient, name string) v1alpha1.PacemakerConfigStatus {
	t.Helper()
	u, err := api.Resource(v1alpha1.Resource).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	data, err := json.Marshal(u.Object["status"])
	require.NoError(t, err)
	var status v1alpha1.PacemakerConfigStatus
	require.NoError(t, json.Unmarshal(data, &status))
	return status
}

func patches(api *dynamicfake.FakeDynamicClient) (n int) {
	for _, a := range api.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	api.ClearActions()
	return n
}

func TestTheSumIsWrittenWhenItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fakeAPI()
		ctx, cancel := context.WithCancel(t.Context())
		configs, nodes := api.Resource(v1alpha1.Resource), api.Resource(v1alpha1.NodeResource)
		_, err := configs.Create(ctx, configObject("default"), metav1.CreateOptions{})
		require.NoError(t, err)
		for _, name := range []string{"a", "b"} {
			_, err = nodes.Create(ctx, nodeObject(t, told(name)), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		others := told("other-instance")
		others.Instance = "canary"
		_, err = nodes.Create(ctx, nodeObject(t, others), metav1.CreateOptions{})
		require.NoError(t, err)

		log, hook := logtest.NewNullLogger()
		summary := func() *Summary {
			return NewSummary(SummaryOptions{API: api, Log: log, Policies: func() []crd.KnownPolicy { return nil }, Configs: func() []crd.Known {
				return []crd.Known{{Name: "default", UID: "uid-of-default", Generation: 3}, {Name: "deleted", UID: "x"}}
			}})
		}
		var running sync.WaitGroup
		running.Go(func() { summary().Run(ctx) })
		// The longest first pause, after the watch has been looked at ten times a second.
		time.Sleep(leastWrite + leastWrite/4 + time.Second)
		synctest.Wait()
		s := statusIn(t, api, "default")
		assert.Equal(t, []int32{2, 2, 8, 4}, []int32{s.Nodes, s.ReadyNodes, s.Waiting, s.Starting})
		assert.Equal(t, 1, patches(api))

		time.Sleep(5 * time.Minute)
		assert.Zero(t, patches(api), "nothing has changed")
		for i := range 120 {
			status := told("a")
			status.Waiting = int32(i)
			_, err = nodes.Update(ctx, nodeObject(t, status), metav1.UpdateOptions{})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, patches(api), 5, "at most every 30 s")
		time.Sleep(leastSum)
		synctest.Wait()
		assert.EqualValues(t, 123, statusIn(t, api, "default").Waiting)

		// Who is elected next finds what was written, and writes nothing.
		cancel()
		running.Wait()
		patches(api)
		ctx, cancel = context.WithCancel(t.Context())
		running.Go(func() { summary().Run(ctx) })
		time.Sleep(time.Minute)
		assert.Zero(t, patches(api))
		assert.Empty(t, hook.AllEntries())
		cancel()
		running.Wait()
	})
}

func TestNothingIsKeptOfObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	api := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.Resource: v1alpha1.Kind + "List", v1alpha1.PolicyResource: v1alpha1.PolicyKind + "List",
	})
	policy := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "p", "uid": "uid-of-p"}}}
	policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PolicyKind))
	_, err := api.Resource(v1alpha1.Resource).Create(t.Context(), configObject("default"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.Resource(v1alpha1.PolicyResource).Create(t.Context(), policy, metav1.CreateOptions{})
	require.NoError(t, err)
	log, _ := logtest.NewNullLogger()
	configs, policies := []crd.Known{{Name: "default", UID: "uid-of-default"}}, []crd.KnownPolicy{{Name: "p", UID: "uid-of-p"}}
	s := NewSummary(SummaryOptions{
		API: api, Log: log,
		Configs:  func() []crd.Known { return configs },
		Policies: func() []crd.KnownPolicy { return policies },
	})
	s.sumAll(t.Context(), noon, nil)
	require.Len(t, s.known, 1)
	require.Len(t, s.knownPolicies, 1)
	configs, policies = nil, nil
	s.sumAll(t.Context(), noon, nil)
	require.Empty(t, s.known)
	require.Empty(t, s.knownPolicies)
}

// An API server that goes away in spring and in autumn is worth two warnings.
func TestAWatchThatFailsAgainIsSaidAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fakeAPI()
		var away atomic.Bool
		api.PrependReactor("list", "*", func(a clienttest.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return forbidden(a)
			}
			return false, nil, nil
		})
		away.Store(true)
		log, hook := logtest.NewNullLogger()
		s := NewSummary(SummaryOptions{
			API: api, Log: log,
			Configs: func() []crd.Known { return nil }, Policies: func() []crd.KnownPolicy { return nil },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		time.Sleep(10 * time.Minute)
		require.Len(t, hook.AllEntries(), 1)
		away.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, hook.AllEntries(), 2)
		require.Equal(t, "watching the PacemakerNodes again", hook.LastEntry().Message)
		cancel()
		running.Wait()
	})
}

// Whoever runs it has to learn of a panic: it is elected still, and nobody else sums up.
func TestASummaryThatPanicsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := logtest.NewNullLogger()
		s := NewSummary(SummaryOptions{API: fakeAPI(), Log: log, Configs: func() []crd.Known { panic("of a config") }})
		assert.PanicsWithValue(t, "of a config", func() { s.Run(t.Context()) })
	})
}

func forbidden(a clienttest.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
}

// candidate takes part in an election.
type candidate struct {
	mu      sync.Mutex
	working int
	stop    func()
}

func (c *candidate) elected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working > 0
}

func stand(t *testing.T, api *kubefake.Clientset, name string, log logrus.FieldLogger) *candidate {
	t.Helper()
	c := &candidate{}
	e := NewElection(ElectionOptions{API: kubetest.Of(api), Namespace: "pod-pacemaker", NodeName: name, Nodes: func() int { return 3 }, Log: log})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx, func(ctx context.Context) {
			c.mu.Lock()
			c.working++
			c.mu.Unlock()
			<-ctx.Done()
			c.mu.Lock()
			c.working--
			c.mu.Unlock()
		})
	}()
	c.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	return c
}

func TestOneIsElectedAndAnotherFollows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := kubefake.NewClientset()
		log, _ := logtest.NewNullLogger()
		var all []*candidate
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, stand(t, api, name, log))
		}
		elected := func() (found []*candidate) {
			for _, c := range all {
				if c.elected() {
					found = append(found, c)
				}
			}
			return found
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		first := elected()
		require.Len(t, first, 1)

		first[0].stop()
		time.Sleep(3 * leastRetry)
		synctest.Wait()
		second := elected()
		require.Len(t, second, 1)
		assert.NotSame(t, first[0], second[0])
		for _, c := range all {
			c.stop()
		}
		assert.Empty(t, elected())
	})
}

// An election that is not possible is said once, and does nothing else.
func TestAnElectionThatIsForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := kubefake.NewClientset()
		api.PrependReactor("*", "leases", forbidden)
		log, hook := logtest.NewNullLogger()
		c := stand(t, api, "a", log)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.False(t, c.elected())
		require.Len(t, hook.AllEntries(), 1)
		assert.Contains(t, hook.LastEntry().Message, "the Lease pod-pacemaker/pod-pacemaker-summary cannot be used")
		c.stop()
	})
}
