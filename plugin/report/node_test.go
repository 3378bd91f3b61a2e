package report

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// world is a reporter with a fake API server, in a synctest bubble.
type world struct {
	t    *testing.T
	api  *dynamicfake.FakeDynamicClient
	log  *logtest.Hook
	r    *Reporter
	stop func()

	mu sync.Mutex
	facts
}

// facts are the reporter's inputs; set changes them.
type facts struct {
	status v1alpha1.PacemakerNodeStatus
	uid    types.UID
}

func (w *world) set(change func(*facts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.facts)
}

// react lets f answer for the API server. The fake locks its reactors when it calls them, but not when they are
// added.
func (w *world) react(f clienttest.ReactionFunc) {
	w.api.Lock()
	defer w.api.Unlock()
	w.api.PrependReactor("*", "pacemakernodes", f)
}

// away lets no request succeed until back is called.
func (w *world) away() (back func()) {
	var away atomic.Bool
	away.Store(true)
	w.react(func(clienttest.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, apierrors.NewServiceUnavailable("starting")
	})
	return func() { away.Store(false) }
}

func (w *world) now() facts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.facts
}

func fakeAPI() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		v1alpha1.PolicyResource: v1alpha1.PolicyKind + "List", v1alpha1.NodeResource: v1alpha1.NodeKind + "List",
	})
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		log.SetLevel(logrus.InfoLevel)
		w := &world{t: t, api: fakeAPI(), log: hook}
		w.set(func(f *facts) {
			f.uid, f.status = "uid-1", v1alpha1.PacemakerNodeStatus{Config: "default", Conditions: paced}
		})
		w.r = New(Options{API: w.api, NodeName: "node-1", Object: "node-1", Log: log})
		w.r.setNodes(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.r.RunNode(ctx, w.given())
		}()
		w.stop = func() {
			cancel()
			<-done
		}
		defer w.stop()
		test(w)
	})
}

func (w *world) given() Facts {
	return Facts{
		NodeUID: func() types.UID { return w.now().uid },
		Status:  func() v1alpha1.PacemakerNodeStatus { return w.now().status },
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// writes returns how often the object was written since the last call.
func (w *world) writes() (n int) {
	for _, a := range w.api.Actions() {
		if a.GetVerb() == "patch" {
			n++
		}
	}
	w.api.ClearActions()
	return n
}

// told returns the object.
func (w *world) told() v1alpha1.PacemakerNode {
	w.t.Helper()
	u, err := w.api.Resource(v1alpha1.NodeResource).Get(w.t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(w.t, err)
	data, err := json.Marshal(u)
	require.NoError(w.t, err)
	var n v1alpha1.PacemakerNode
	require.NoError(w.t, json.Unmarshal(data, &n))
	return n
}

func (w *world) logged() (lines []string) {
	for _, e := range w.log.AllEntries() {
		lines = append(lines, e.Level.String()+": "+e.Message)
	}
	w.log.Reset()
	return lines
}

// paced are the conditions of a daemon that paces pods.
var paced = []metav1.Condition{
	{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaced},
	{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected},
}

func TestANodeWritesChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass(leastWrite)
		n := w.told()
		assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "uid-1"}}, n.OwnerReferences)
		assert.Equal(t, "node-1", n.Status.NodeName)
		assert.True(t, meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady))
		assert.NotNil(t, n.Status.LastReportTime)
		w.writes()

		w.pass(heartbeat - time.Minute)
		assert.Zero(t, w.writes(), "without a change, nothing is written")
		w.set(func(f *facts) { f.status.Waiting, f.status.HeldBy = 7, "Concurrency" })
		w.pass(leastWrite + leastWrite/4)
		assert.Equal(t, 1, w.writes())
		assert.EqualValues(t, 7, w.told().Status.Waiting)

		w.set(func(f *facts) { f.status.Waiting, f.status.HeldBy = 0, "" })
		w.pass(leastWrite + leastWrite/4)
		assert.Zero(t, w.told().Status.Waiting)
		assert.Empty(t, w.told().Status.HeldBy, "a reason that no longer applies is removed")
		assert.Empty(t, w.logged())
	})
}

// The adaptive limit follows the load of the node, also while no pod starts.
func TestALimitThatNoPodNeedsIsNoChange(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set(func(f *facts) { f.status.Limit = 12 })
		w.pass(leastWrite)
		w.writes()
		for range 30 {
			w.set(func(f *facts) { f.status.Limit = 10 + f.status.Limit%4 })
			w.pass(leastWrite)
		}
		assert.Zero(t, w.writes())

		w.set(func(f *facts) { f.status.Limit, f.status.Starting = 7, 1 })
		w.pass(leastWrite + leastWrite/4)
		assert.EqualValues(t, 7, w.told().Status.Limit)
		w.set(func(f *facts) { f.status.Limit = 8 })
		w.pass(leastWrite + leastWrite/4)
		assert.EqualValues(t, 8, w.told().Status.Limit, "a pod starts")
		w.set(func(f *facts) { f.status.Limit, f.status.Starting, f.status.ConfigGeneration = 2, 0, 2 })
		w.pass(leastWrite + leastWrite/4)
		assert.EqualValues(t, 2, w.told().Status.Limit, "another config is in force")
	})
}

// For any number of events, a node writes once in the interval, which grows with the cluster.
func TestWritesAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes int
		most  int
	}{"one": {1, 60}, "5000": {5000, 12}, "unknown": {0, 12}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.r.setNodes(c.nodes)
				w.pass(2 * time.Minute)
				w.writes()
				for range 600 {
					w.set(func(f *facts) { f.status.Waiting++ })
					w.pass(time.Second)
				}
				n := w.writes()
				assert.LessOrEqual(t, n, c.most)
				assert.GreaterOrEqual(t, n, c.most*7/10)
			})
		})
	}
}

func TestANodeShowsThatItLives(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass(leastWrite)
		for range 10 {
			w.writes()
			before := w.told().Status.LastReportTime.Time
			w.pass(heartbeat + heartbeat/4 + 2*leastWrite)
			writes := w.writes()
			assert.GreaterOrEqual(t, writes, 1)
			assert.LessOrEqual(t, writes, 2)
			assert.Less(t, w.told().Status.LastReportTime.Sub(before), v1alpha1.NodeGoneAfter)
		}
	})
}

func TestANodeSaysThatItWasStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set(func(f *facts) { f.status.Waiting = 3 })
		w.pass(leastWrite)
		w.stop()
		n := w.told().Status
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionConnected} {
			c := meta.FindStatusCondition(n.Conditions, kind)
			require.NotNil(t, c, kind)
			assert.Equal(t, metav1.ConditionFalse, c.Status, kind)
			assert.Equal(t, v1alpha1.ReasonStopped, c.Reason, kind)
			assert.Equal(t, "the daemon was stopped: pods start unpaced", c.Message, kind)
		}
		assert.Zero(t, n.Waiting)
		assert.Equal(t, "default", n.Config)
	})
}

// A condition has the time at which its status changed, whatever else has changed since.
func TestAConditionSaysSinceWhenItIsSo(t *testing.T) {
	inWorld(t, func(w *world) {
		since := func(kind string) time.Time {
			return meta.FindStatusCondition(w.told().Status.Conditions, kind).LastTransitionTime.Time
		}
		w.pass(leastWrite)
		ready, connected := since(v1alpha1.ConditionReady), since(v1alpha1.ConditionConnected)
		w.set(func(f *facts) { f.status.Waiting = 3 })
		w.pass(heartbeat)
		assert.Equal(t, ready, since(v1alpha1.ConditionReady))
		w.set(func(f *facts) {
			f.status.Conditions = slices.Clone(paced)
			f.status.Conditions[0].Status, f.status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonNotPaced
		})
		w.pass(heartbeat)
		assert.True(t, ready.Before(since(v1alpha1.ConditionReady)))
		assert.Equal(t, connected, since(v1alpha1.ConditionConnected))
	})
}

// If its own last write failed, it does not know that the next daemon has written the status since.
func TestAStoppedDaemonLeavesTheReportOfTheNextOne(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"its last write succeeded": false, "its last write failed": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.pass(leastWrite)
				if fails {
					back := w.away()
					w.set(func(f *facts) { f.status.Waiting++ })
					w.pass(2 * leastWrite)
					assert.Len(t, w.logged(), 1)
					back()
				}
				next := New(w.r.Options)
				require.NoError(t, next.report(t.Context(), time.Now().Add(time.Second), w.given()))
				w.stop()
				assert.True(t, meta.IsStatusConditionTrue(w.told().Status.Conditions, v1alpha1.ConditionConnected))
			})
		})
	}
}

// An administrator who removes everything may delete the PacemakerNodes before the daemons.
func TestAStoppedDaemonLeavesNoEmptyObject(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass(leastWrite)
		require.NoError(t, w.api.Resource(v1alpha1.NodeResource).Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
		w.stop()
		_, err := w.api.Resource(v1alpha1.NodeResource).Get(t.Context(), "node-1", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// The reporter continues after any answer of the API server, and logs a fault once. While the number of nodes is not
// known, as here, the tries become less frequent.
func TestANodeTriesAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.r.setNodes(0)
		back := w.away()
		w.pass(time.Hour)
		assert.Len(t, w.logged(), 1)
		tries := w.writes()
		assert.Less(t, tries, 30, "the tries become less frequent")
		assert.Greater(t, tries, 10)

		back()
		w.pass(heartbeat)
		assert.Equal(t, []string{"info: this node's PacemakerNode is written again"}, w.logged())
		assert.True(t, meta.IsStatusConditionTrue(w.told().Status.Conditions, v1alpha1.ConditionReady))
	})
}

func TestANodeWaitsForTheDefinition(t *testing.T) {
	inWorld(t, func(w *world) {
		w.react(func(clienttest.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", schema.GroupResource{}, "", "404 page not found", 0, true)
		})
		w.pass(time.Hour)
		assert.Len(t, w.logged(), 1)
	})
}

// A node that is created again under the same name gets an object of its own, once the old one was collected.
func TestANodeLeavesAnothersObjectAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass(leastWrite)
		before := w.told()
		w.set(func(f *facts) { f.uid, f.status.Waiting = "uid-2", 9 })
		w.pass(time.Minute)
		assert.Equal(t, before.Status, w.told().Status)
		assert.Len(t, w.logged(), 1)

		require.NoError(t, w.api.Resource(v1alpha1.NodeResource).Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
		w.pass(heartbeat)
		assert.EqualValues(t, 9, w.told().Status.Waiting)
		assert.EqualValues(t, "uid-2", w.told().OwnerReferences[0].UID)
	})
}

// Kubernetes collects the object with the Node that owns it. kubelet makes the Node again when it is restarted.
func TestANodeThatWasMadeAgainReportsAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.pass(leastWrite)
		require.NoError(t, w.api.Resource(v1alpha1.NodeResource).Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
		w.set(func(f *facts) { f.uid = "uid-2" })
		w.pass(leastWrite + leastWrite/4)
		assert.EqualValues(t, "uid-2", w.told().OwnerReferences[0].UID)
		assert.True(t, meta.IsStatusConditionTrue(w.told().Status.Conditions, v1alpha1.ConditionReady))
	})
}

func TestANodeThatIsNotKnownYetReportsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set(func(f *facts) { f.uid = "" })
		w.pass(time.Hour)
		assert.Zero(t, w.writes())
		assert.Len(t, w.logged(), 1)
		w.set(func(f *facts) { f.uid = "uid-1" })
		w.pass(heartbeat)
		assert.True(t, meta.IsStatusConditionTrue(w.told().Status.Conditions, v1alpha1.ConditionReady))
	})
}
