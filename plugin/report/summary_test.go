package report

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// longestLook is the longest time between two looks at the Lease in a small cluster.
const longestLook = leastSum + leastSum/2

const leaseName = "pod-pacemaker-summary"

// nodeObject returns the PacemakerNode with this status, written now by the API server's clock.
func nodeObject(t *testing.T, status v1alpha1.PacemakerNodeStatus) *unstructured.Unstructured {
	t.Helper()
	at := metav1.NewTime(time.Now())
	status.LastReportTime = &at
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.PacemakerNode{
		ObjectMeta: metav1.ObjectMeta{
			Name: status.NodeName, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}, {Manager: "pod-pacemaker", Subresource: "status", Time: &at}},
		},
		Status: status,
	})
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.NodeKind))
	return u
}

// usedOn is the report of a node with this many pods running under the policy t1.
func usedOn(name string, pods int32) v1alpha1.PacemakerNodeStatus {
	return tells(name, v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 1, Groups: []v1alpha1.PolicyGroup{group("", pods, 1, "1m")}})
}

// summing is a cluster with the policy t1, whose status is summed up.
type summing struct {
	t    *testing.T
	api  *dynamicfake.FakeDynamicClient
	kube *kubefake.Clientset
	log  *logtest.Hook
	s    *Reporter

	known   []crd.KnownPolicy
	configs []crd.KnownConfig
}

func newSumming(t *testing.T) *summing {
	t.Helper()
	w := &summing{t: t, api: fakeAPI(), kube: kubefake.NewClientset()}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "t1", "uid": "uid-of-t1", "generation": int64(3)}}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.PolicyKind))
	_, err := w.api.Resource(v1alpha1.PolicyResource).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	w.s = w.daemon("a")
	known := knownPolicy(t, t1)
	known.UID = "uid-of-t1"
	w.known = []crd.KnownPolicy{known, {ObjectMeta: metav1.ObjectMeta{Name: "deleted", UID: "x"}}}
	return w
}

// inSumming runs test with such a cluster, in a bubble.
func inSumming(t *testing.T, test func(t *testing.T, w *summing)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newSumming(t)) })
}

// daemon returns the reporter of another daemon. From then on, w has the log of that daemon.
func (w *summing) daemon(name string) *Reporter {
	w.t.Helper()
	log, hook := logtest.NewNullLogger()
	w.log = hook
	r := New(Options{API: w.api, Leases: kubetest.Of(w.kube).Leases("pod-pacemaker"), NodeName: name, Lease: leaseName, Log: log})
	r.wroteNow()
	return r
}

// wroteNow is what RunNode does when it has written this daemon's PacemakerNode.
func (r *Reporter) wroteNow() { r.reported.Store(new(metav1.Now())) }

func noConfigs() []crd.KnownConfig { return nil }

// all are the objects that are summed up.
func (w *summing) all() Summed {
	return Summed{func() []crd.KnownPolicy { return w.known }, func() []crd.KnownConfig { return w.configs }}
}

// runs lets these daemons sum up until stop is called.
func (w *summing) runs(all ...*Reporter) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{}, len(all))
	for _, s := range all {
		go func() {
			s.RunSummary(ctx, w.all())
			done <- struct{}{}
		}()
	}
	return func() {
		cancel()
		for range all {
			<-done
		}
	}
}

func (w *summing) creates(status v1alpha1.PacemakerNodeStatus) {
	w.t.Helper()
	_, err := w.api.Resource(v1alpha1.NodeResource).Create(w.t.Context(), nodeObject(w.t, status), metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *summing) updates(status v1alpha1.PacemakerNodeStatus) {
	w.t.Helper()
	_, err := w.api.Resource(v1alpha1.NodeResource).Update(w.t.Context(), nodeObject(w.t, status), metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// passes lets time pass.
func (w *summing) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *summing) status() v1alpha1.StartPolicyStatus {
	w.t.Helper()
	u, err := w.api.Resource(v1alpha1.PolicyResource).Get(w.t.Context(), "t1", metav1.GetOptions{})
	require.NoError(w.t, err)
	return statusOf[v1alpha1.StartPolicyStatus](u)
}

// counts returns how often a request was made since the last call.
func (w *summing) counts(verb string) (n int) {
	for _, a := range w.api.Actions() {
		if a.GetVerb() == verb {
			n++
		}
	}
	w.api.ClearActions()
	return n
}

func TestTheSumIsWrittenWhenItChanges(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		w.creates(usedOn("a", 1))
		w.creates(usedOn("b", 2))
		others := usedOn("other-instance", 4)
		others.Instance = "canary"
		w.creates(others)
		stop := w.runs(w.s)
		w.passes(leastSum / 10)
		s := w.status()
		assert.Equal(t, []int32{2, 3, 2}, []int32{s.Nodes, s.Used.Running.Pods, s.Waiting})
		assert.Equal(t, 2, w.s.Nodes())
		assert.Equal(t, 1, w.counts("patch"))

		w.passes(5 * time.Minute)
		assert.Zero(t, w.counts("patch"), "without a change, nothing is written")
		for i := range 120 {
			w.updates(usedOn("a", int32(i)))
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, w.counts("patch"), int(120*time.Second/leastSum)+1, "at most one in the interval")
		w.passes(longestLook)
		assert.EqualValues(t, 121, w.status().Used.Running.Pods)
		stop()
		require.Len(t, w.log.AllEntries(), 1)
		assert.Equal(t, "this daemon takes turns with others to sum up the PacemakerNodes", w.log.LastEntry().Message)

		// The daemon that sums up next reads the written sum, and writes nothing.
		w.counts("patch")
		stop = w.runs(w.daemon("b"))
		w.passes(3 * longestLook)
		assert.Zero(t, w.counts("patch"))
		stop()
	})
}

// The watch of a daemon may be behind. It must not write that an older generation is in force.
func TestADaemonThatIsBehindWritesNoStatus(t *testing.T) {
	t.Parallel()
	w := newSumming(t)
	w.creates(usedOn("a", 1))
	u, err := w.api.Resource(v1alpha1.PolicyResource).Get(t.Context(), "t1", metav1.GetOptions{})
	require.NoError(t, err)
	u.SetGeneration(4)
	_, err = w.api.Resource(v1alpha1.PolicyResource).Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	mine, err := w.s.sumIfDue(t.Context(), w.all())
	require.NoError(t, err)
	assert.True(t, mine)
	assert.Zero(t, w.counts("patch"))
}

// Three daemons together sum up as often as one, even if one of them ends. All know the number of nodes.
func TestDaemonsTakeTurns(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		w.creates(usedOn("a", 1))
		b, c := w.daemon("b"), w.daemon("c")
		stopFirst, stopOthers := w.runs(w.s), w.runs(b, c)
		const long = 20 * time.Minute
		w.passes(long)
		sums := w.counts("list")
		assert.LessOrEqual(t, sums, int(long/leastSum)+1)
		assert.GreaterOrEqual(t, sums, int(long/(2*longestLook)), "with fewer sums, the status is out of date for too long")
		for _, s := range []*Reporter{w.s, b, c} {
			assert.Equal(t, 1, s.Nodes())
		}
		stopFirst()
		w.updates(usedOn("a", 7))
		w.passes(2 * longestLook)
		assert.EqualValues(t, 7, w.status().Used.Running.Pods)
		stopOthers()
	})
}

// Two daemons may find a sum due at the same moment. The API server lets only one of them continue.
func TestOnlyOneOfTwoSumsUp(t *testing.T) {
	t.Parallel()
	for verb, refusal := range map[string]func(a clienttest.Action) error{
		"create": func(a clienttest.Action) error {
			return apierrors.NewAlreadyExists(a.GetResource().GroupResource(), "")
		},
		"update": func(a clienttest.Action) error {
			return apierrors.NewConflict(a.GetResource().GroupResource(), "", errors.New("it was changed"))
		},
	} {
		w := newSumming(t)
		w.creates(usedOn("a", 1))
		if verb == "update" {
			_, err := w.s.Leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}, metav1.CreateOptions{})
			require.NoError(t, err)
			w.s.seen, w.s.seenAt = "<nil>", time.Now().Add(-time.Minute)
		}
		w.kube.PrependReactor(verb, "leases", func(a clienttest.Action) (bool, runtime.Object, error) { return true, nil, refusal(a) })
		w.api.ClearActions()
		mine, err := w.s.sumIfDue(t.Context(), w.all())
		require.NoError(t, err)
		assert.False(t, mine)
		assert.Empty(t, w.api.Actions(), "%s: the other one neither lists nor writes", verb)
	}
}

// Without its own PacemakerNode, a daemon does not know which of the others are old, and another daemon sums up.
func TestADaemonThatHasNotReportedTakesNoTurn(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		w.s.Object = "a"
		w.s.reported.Store(nil)
		w.creates(usedOn("b", 1))
		stopSums := w.runs(w.s)
		w.passes(2 * longestLook)
		assert.Zero(t, w.counts("list"))
		w.passes(heartbeat)
		assert.Equal(t, 1, w.s.Nodes(), "nobody may be able to write a PacemakerNode")

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.s.RunNode(ctx, Facts{
				NodeUID: func() types.UID { return "uid-a" },
				Status:  func() v1alpha1.PacemakerNodeStatus { return usedOn("a", 2) },
			})
		}()
		w.passes(leastWrite + 2*longestLook)
		assert.Equal(t, 2, w.s.Nodes())
		assert.EqualValues(t, 3, w.status().Used.Running.Pods)
		stopSums()
		stop()
		<-done
	})
}

// A list of many PacemakerNodes takes seconds, in which the daemons of other nodes look at the Lease.
func TestWhileOneListsTheSumIsNotDue(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		w.creates(usedOn("a", 1))
		other := w.daemon("b")
		for _, s := range []*Reporter{w.s, other} {
			_, err := s.sumIfDue(t.Context(), w.all())
			require.NoError(t, err)
		}
		w.counts("list")
		w.passes(time.Hour) // the API server is away
		w.api.PrependReactor("list", "pacemakernodes", func(clienttest.Action) (bool, runtime.Object, error) {
			_, due, err := other.read(t.Context())
			require.NoError(t, err)
			assert.False(t, due)
			return false, nil, nil
		})
		mine, err := w.s.sumIfDue(t.Context(), w.all())
		require.NoError(t, err)
		assert.True(t, mine)
		assert.Equal(t, 1, w.counts("list"))
	})
}

// A daemon has the Lease, but cannot list. It must not take each turn.
func TestAfterAFailedListAnotherDaemonSumsUp(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		w.creates(usedOn("a", 1))
		failing, api := w.daemon("b"), fakeAPI()
		failing.API = api
		api.PrependReactor("list", "pacemakernodes", func(clienttest.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("it is too slow")
		})
		_, err := failing.sumIfDue(t.Context(), w.all())
		require.ErrorContains(t, err, "it is too slow")
		isDue := func(s *Reporter) bool {
			_, due, err := s.read(t.Context())
			require.NoError(t, err)
			return due
		}
		assert.False(t, isDue(w.s), "the turn has just been taken")
		w.passes(leastSum)
		assert.False(t, isDue(failing))
		mine, err := w.s.sumIfDue(t.Context(), w.all())
		require.NoError(t, err)
		assert.True(t, mine)

		w.passes(leastSum)
		assert.False(t, isDue(failing), "it has just seen the turn of the other")
		w.passes(leastSum)
		assert.True(t, isDue(failing))
		_, err = failing.sumIfDue(t.Context(), w.all())
		require.ErrorContains(t, err, "it is too slow")
		w.passes(2 * leastSum)
		assert.True(t, isDue(failing), "no other daemon has taken the turn")
	})
}

// The interval of the daemons' looks grows with the number of nodes, which has an upper bound.
func TestTheSizeOfTheClusterHasABound(t *testing.T) {
	t.Parallel()
	w := newSumming(t)
	for n, want := range map[string]int{"5000": 5000, "1099511627776": mostNodes, "-1": nodesUnknown, "0": nodesUnknown} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName, Annotations: map[string]string{nodesAnnotation: n}}}
		w.kube.PrependReactor("get", "leases", func(clienttest.Action) (bool, runtime.Object, error) { return true, lease, nil })
		_, due, err := w.s.read(t.Context())
		require.NoError(t, err)
		assert.False(t, due, "the sum is new")
		assert.Equal(t, want, w.s.Nodes())
	}
	assert.Equal(t, leastSum, sumInterval(0))
	assert.Equal(t, 100*time.Second, sumInterval(5000))
	assert.Equal(t, 1000*time.Second, sumInterval(1<<40))
}

// While a daemon cannot read the Lease, it does not know how many others cannot either.
func TestADaemonThatCannotReadTheLeaseTriesEverLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, reads := newSumming(t), 0
		w.kube.PrependReactor("get", "leases", func(a clienttest.Action) (bool, runtime.Object, error) {
			reads++
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
		})
		stop := w.runs(w.s)
		w.passes(time.Hour)
		stop()
		assert.Less(t, reads, 20)
		assert.Greater(t, reads, 10)
		assert.Equal(t, nodesUnknown, w.s.Nodes())
	})
}

// A node whose daemon is silent for long does not count. The node's own clock does not matter.
func TestSilentNodesDoNotCount(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		behind := func() *unstructured.Unstructured {
			u := nodeObject(t, usedOn("behind", 1))
			require.NoError(t, unstructured.SetNestedField(u.Object, "2001-01-01T00:00:00Z", "status", "lastReportTime"))
			return u
		}
		nodes := w.api.Resource(v1alpha1.NodeResource)
		_, err := nodes.Create(t.Context(), behind(), metav1.CreateOptions{})
		require.NoError(t, err)
		w.creates(usedOn("silent", 2))
		never := nodeObject(t, usedOn("never", 4))
		unstructured.RemoveNestedField(never.Object, "status", "lastReportTime")
		_, err = nodes.Create(t.Context(), never, metav1.CreateOptions{})
		require.NoError(t, err)
		began := time.Now()
		stop := w.runs(w.s)
		for range 2 * v1alpha1.NodeGoneAfter / heartbeat {
			time.Sleep(heartbeat)
			silentFor := time.Since(began)
			_, err = nodes.Update(t.Context(), behind(), metav1.UpdateOptions{})
			w.s.wroteNow()
			require.NoError(t, err)
			w.passes(2 * longestLook)
			want := 2
			if silentFor > v1alpha1.NodeGoneAfter {
				want = 1
			}
			assert.Equal(t, want, w.s.Nodes(), "after %s", silentFor)
			began = began.Add(-time.Second) // kubelet's times have whole seconds
		}
		require.NoError(t, nodes.Delete(t.Context(), "behind", metav1.DeleteOptions{}))
		require.NoError(t, nodes.Delete(t.Context(), "silent", metav1.DeleteOptions{}))
		w.passes(2 * longestLook)
		assert.Equal(t, nodesUnknown, w.s.Nodes())
		stop()
	})
}

// A fault is logged once, and so is its end, even if other daemons have their turns in between.
func TestAFailedSumIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, what := range []struct {
		verb, resource, says string
		kube                 bool
	}{
		{"list", "pacemakernodes", "list the PacemakerNodes", false},
		{"patch", "startpolicies", "write the status of StartPolicy t1", false},
		{"get", "leases", "read the Lease pod-pacemaker-summary", true},
		{"update", "leases", "write the Lease pod-pacemaker-summary", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newSumming(t)
			w.creates(usedOn("a", 1))
			var away atomic.Bool
			deny := func(a clienttest.Action) (bool, runtime.Object, error) {
				if !away.Load() {
					return false, nil, nil
				}
				return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
			}
			if what.kube {
				w.kube.PrependReactor(what.verb, what.resource, deny)
			} else {
				w.api.PrependReactor(what.verb, what.resource, deny)
			}
			stop := w.runs(w.s)
			w.passes(longestLook)
			w.log.Reset()
			away.Store(true)
			w.updates(usedOn("a", 5))
			w.passes(10 * time.Minute)
			require.Len(t, w.log.AllEntries(), 1, what.says)
			require.ErrorContains(t, w.log.LastEntry().Data["error"].(error), what.says) //nolint:errcheck,forcetypeassert // the test fails then
			away.Store(false)
			w.passes(2 * longestLook)
			require.Len(t, w.log.AllEntries(), 2)
			assert.Equal(t, "the status of every StartPolicy and PacemakerConfig is written again", w.log.LastEntry().Message)
			assert.EqualValues(t, 5, w.status().Used.Running.Pods)
			stop()
		})
	}
}

// With many policies, or a slow API server, the time of a sum is not enough for all of them.
func TestEachPolicyIsSummedUpAtSomeTime(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		const policies, inTime = 12, 5
		w.creates(usedOn("a", 1))
		left, summed := 0, map[string]bool{}
		w.api.PrependReactor("list", "pacemakernodes", func(clienttest.Action) (bool, runtime.Object, error) {
			left = inTime
			return false, nil, nil
		})
		w.api.PrependReactor("get", "startpolicies", func(a clienttest.Action) (bool, runtime.Object, error) {
			if left--; left < 0 {
				return true, nil, context.DeadlineExceeded
			}
			get, _ := a.(clienttest.GetAction)
			summed[get.GetName()] = true
			return true, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(3)}}}, nil
		})
		w.api.PrependReactor("patch", "startpolicies", func(clienttest.Action) (bool, runtime.Object, error) {
			return true, &unstructured.Unstructured{Object: map[string]any{}}, nil
		})
		var all []crd.KnownPolicy
		for i := range policies {
			known := knownPolicy(t, t1)
			known.Name = fmt.Sprint("t", i)
			all = append(all, known)
		}
		w.known = all
		stop := w.runs(w.s)
		w.passes(20 * time.Minute)
		stop()
		assert.Len(t, summed, policies)
	})
}

// The daemon supervises the summary, and must learn of a panic.
func TestASummaryThatPanicsEnds(t *testing.T) {
	inSumming(t, func(t *testing.T, w *summing) {
		policies := func() []crd.KnownPolicy { panic("of a policy") }
		assert.PanicsWithValue(t, "of a policy", func() { w.s.RunSummary(t.Context(), Summed{policies, noConfigs}) })
	})
}

// The API server's clock was ahead while a node wrote its last report.
func TestAReportOfTheFutureHidesNoOtherNode(t *testing.T) {
	t.Parallel()
	w := newSumming(t)
	for _, name := range []string{"a", "b", "c"} {
		w.creates(usedOn(name, 1))
	}
	ahead, at := nodeObject(t, usedOn("z", 1)), metav1.NewTime(time.Now().Add(24*time.Hour))
	ahead.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "pod-pacemaker", Subresource: "status", Time: &at}})
	_, err := w.api.Resource(v1alpha1.NodeResource).Create(t.Context(), ahead, metav1.CreateOptions{})
	require.NoError(t, err)
	nodes := 0
	require.NoError(t, w.s.eachReport(t.Context(), *w.s.reported.Load(), func(v1alpha1.PacemakerNodeStatus) { nodes++ }))
	require.Equal(t, 4, nodes)
}
