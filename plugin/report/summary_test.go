package report

import (
	"context"
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

// usedOn is what a node tells on which so many pods run under the policy t1.
func usedOn(name string, pods int32) v1alpha1.PacemakerNodeStatus {
	return tells(name, v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 1, Groups: []v1alpha1.PolicyGroup{group("", pods, 1, "1m")}})
}

// summing is a cluster with the policy t1 whose status is summed up.
type summing struct {
	t     *testing.T
	api   *dynamicfake.FakeDynamicClient
	log   *logtest.Hook
	nodes atomic.Int64
	s     *Summary
}

func newSumming(t *testing.T) *summing {
	t.Helper()
	w := &summing{t: t, api: fakeAPI()}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "t1", "uid": "uid-of-t1"}}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PolicyKind))
	_, err := w.api.Resource(v1alpha1.PolicyResource).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	log, hook := logtest.NewNullLogger()
	w.log = hook
	known := knownPolicy(t, t1)
	known.UID = "uid-of-t1"
	w.s = NewSummary(SummaryOptions{
		API: w.api, Log: log, SetNodes: func(n int) { w.nodes.Store(int64(n)) },
		Policies: func() []crd.KnownPolicy { return []crd.KnownPolicy{known, {Name: "deleted", UID: "x"}} },
	})
	return w
}

// heardAt gives when the summary last heard of a node.
func (w *summing) heardAt(node string) time.Time {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.heard[node].at
}

// runs sums up until what it gives is called.
func (w *summing) runs() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.s.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (w *summing) creates(status v1alpha1.PacemakerNodeStatus) {
	w.t.Helper()
	_, err := w.api.Resource(v1alpha1.NodeResource).Create(w.t.Context(), nodeObject(w.t, status), metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *summing) status() v1alpha1.StartPolicyStatus {
	w.t.Helper()
	u, err := w.api.Resource(v1alpha1.PolicyResource).Get(w.t.Context(), "t1", metav1.GetOptions{})
	require.NoError(w.t, err)
	return statusOf[v1alpha1.StartPolicyStatus](u)
}

func (w *summing) patches() (n int) {
	for _, a := range w.api.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	w.api.ClearActions()
	return n
}

func TestTheSumIsWrittenWhenItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSumming(t)
		w.creates(usedOn("a", 1))
		w.creates(usedOn("b", 2))
		others := usedOn("other-instance", 4)
		others.Instance = "canary"
		w.creates(others)
		stop := w.runs()
		// The longest first pause.
		time.Sleep(leastWrite + leastWrite/4 + time.Second)
		synctest.Wait()
		s := w.status()
		assert.Equal(t, []int32{2, 3, 2}, []int32{s.Nodes, s.Used.Running.Pods, s.Waiting})
		assert.EqualValues(t, 2, w.nodes.Load())
		assert.Equal(t, 1, w.patches())

		time.Sleep(5 * time.Minute)
		assert.Zero(t, w.patches(), "nothing has changed")
		for i := range 120 {
			_, err := w.api.Resource(v1alpha1.NodeResource).Update(t.Context(), nodeObject(t, usedOn("a", int32(i))), metav1.UpdateOptions{})
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, w.patches(), 5, "at most every 30 s")
		time.Sleep(leastSum)
		synctest.Wait()
		assert.EqualValues(t, 121, w.status().Used.Running.Pods)
		stop()

		// Who is elected next finds what was written, and writes nothing.
		w.patches()
		w.s = NewSummary(w.s.SummaryOptions)
		stop = w.runs()
		time.Sleep(time.Minute)
		assert.Zero(t, w.patches())
		assert.Empty(t, w.log.AllEntries())
		stop()
	})
}

// A node whose daemon is silent for long does not count. How its clock goes does not matter.
func TestTheSilentAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSumming(t)
		behind := nodeObject(t, usedOn("behind", 1))
		require.NoError(t, unstructured.SetNestedField(behind.Object, "2001-01-01T00:00:00Z", "status", "written"))
		_, err := w.api.Resource(v1alpha1.NodeResource).Create(t.Context(), behind, metav1.CreateOptions{})
		require.NoError(t, err)
		w.creates(usedOn("silent", 2))
		never := nodeObject(t, usedOn("never", 4))
		unstructured.RemoveNestedField(never.Object, "status", "written")
		_, err = w.api.Resource(v1alpha1.NodeResource).Create(t.Context(), never, metav1.CreateOptions{})
		require.NoError(t, err)
		stop := w.runs()
		for range 2 * goneAfter / heartbeat {
			time.Sleep(heartbeat)
			_, err = w.api.Resource(v1alpha1.NodeResource).Update(t.Context(), behind, metav1.UpdateOptions{})
			require.NoError(t, err)
			want := int64(2)
			if w.heardAt("silent").Add(goneAfter).Before(time.Now()) {
				want = 1
			}
			time.Sleep(leastSum)
			synctest.Wait()
			assert.Equal(t, want, w.nodes.Load())
		}
		assert.EqualValues(t, 1, w.nodes.Load())
		require.NoError(t, w.api.Resource(v1alpha1.NodeResource).Delete(t.Context(), "behind", metav1.DeleteOptions{}))
		time.Sleep(leastSum)
		synctest.Wait()
		assert.Zero(t, w.nodes.Load())
		stop()
	})
}

func TestNothingIsKeptOfPoliciesThatAreGone(t *testing.T) {
	t.Parallel()
	w := newSumming(t)
	w.s.sumAll(t.Context(), policyNow, nil)
	require.Len(t, w.s.known, 1)
	w.s.Policies = func() []crd.KnownPolicy { return nil }
	w.s.sumAll(t.Context(), policyNow, nil)
	require.Empty(t, w.s.known)
}

// An API server that goes away in spring and in autumn is worth two warnings.
func TestAWatchThatFailsAgainIsSaidAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSumming(t)
		var away atomic.Bool
		w.api.PrependReactor("list", "pacemakernodes", func(a clienttest.Action) (bool, runtime.Object, error) {
			if away.Load() {
				return forbidden(a)
			}
			return false, nil, nil
		})
		away.Store(true)
		stop := w.runs()
		time.Sleep(10 * time.Minute)
		require.Len(t, w.log.AllEntries(), 1)
		away.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, w.log.AllEntries(), 2)
		require.Equal(t, "watching PacemakerNodes again", w.log.LastEntry().Message)
		stop()
	})
}

// Whoever runs it has to learn of a panic: it is elected still, and nobody else sums up.
func TestASummaryThatPanicsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSumming(t)
		w.s.Policies = func() []crd.KnownPolicy { panic("of a policy") }
		assert.PanicsWithValue(t, "of a policy", func() { w.s.Run(t.Context()) })
	})
}

func forbidden(a clienttest.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
}

// candidate takes part in an election.
type candidate struct {
	*Election
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
	e := NewElection(ElectionOptions{API: kubetest.Of(api), Namespace: "pod-pacemaker", NodeName: name, Log: log})
	c := &candidate{Election: e}
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
		time.Sleep(2 * lasts * leastRetry)
		synctest.Wait()
		first := elected()
		require.Len(t, first, 1)
		first[0].SetNodes(1 << 40)
		time.Sleep(3 * mostRetry)
		synctest.Wait()
		for _, c := range all {
			assert.Equal(t, mostNodes, c.Nodes(), "the elected one tells how many nodes there are")
		}
		first[0].SetNodes(3)
		time.Sleep(3 * mostRetry)
		synctest.Wait()
		require.Equal(t, first, elected(), "and how often they look changes with it")

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

// A daemon that cannot renew its Lease works no longer when the others may hold it expired.
func TestWhoCannotRenewTheLeaseEndsItsWorkInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := kubefake.NewClientset()
		var denied atomic.Bool
		api.PrependReactor("update", "leases", func(a clienttest.Action) (bool, runtime.Object, error) {
			if !denied.Load() {
				return false, nil, nil
			}
			return forbidden(a)
		})
		log, _ := logtest.NewNullLogger()
		c := stand(t, api, "a", log)
		time.Sleep(2 * lasts * leastRetry)
		synctest.Wait()
		require.True(t, c.elected())
		denied.Store(true)
		time.Sleep(leastRetry)
		synctest.Wait()
		assert.True(t, c.elected(), "one failure is no reason")
		time.Sleep((lasts - 1) * leastRetry)
		synctest.Wait()
		assert.False(t, c.elected())
		c.stop()
	})
}
