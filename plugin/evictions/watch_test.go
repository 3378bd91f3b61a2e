package evictions

import (
	"context"
	"slices"
	"strings"
	"sync"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

const nodeName = "node-1"

// world is a Watch that runs, with a fake API server, in a synctest bubble.
type world struct {
	t   *testing.T
	api *fake.Clientset
	w   *Watch
	log *logtest.Hook

	mu   sync.Mutex
	told []told
}

// told is what a Watch told of a pod.
type told struct {
	Pod
	Cause
}

// inWorld runs test against a Watch that runs.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, hook := logtest.NewNullLogger()
		w := &world{t: t, api: fake.NewClientset(), log: hook}
		w.w = New(kubetest.Of(w.api), nodeName, log, func(pod Pod, cause Cause) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, told{pod, cause})
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.w.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			assert.NoError(t, <-done)
		})
		synctest.Wait()
		test(w)
	})
}

// does changes something, and waits until all that follows from it has happened.
func (w *world) does(change func()) {
	change()
	synctest.Wait()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { w.does(func() { time.Sleep(d) }) }

// evicts writes an event as kubelet does when it evicts a pod, and gives that pod.
func (w *world) evicts(namespace, name string, changes ...func(*corev1.Event)) Pod {
	w.t.Helper()
	return w.takesDown(Eviction, namespace, name, changes...)
}

// takesDown writes an event as kubelet does when it takes a pod down, and gives that pod.
func (w *world) takesDown(cause Cause, namespace, name string, changes ...func(*corev1.Event)) Pod {
	w.t.Helper()
	event := evictionOf(namespace, name)
	event.Reason = string(cause)
	for _, change := range changes {
		change(event)
	}
	_, err := w.api.CoreV1().Events(namespace).Create(w.t.Context(), event, metav1.CreateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
	return Pod{Namespace: namespace, Name: name, UID: "uid-" + name}
}

// evictionOf is an event as kubelet writes it.
func evictionOf(namespace, name string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".18a"},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: namespace, Name: name, UID: types.UID("uid-" + name),
		},
		Reason: "Evicted", Type: corev1.EventTypeWarning, Count: 1,
		Message:             "The node was low on resource: pids.",
		Source:              corev1.EventSource{Component: "kubelet", Host: nodeName},
		ReportingController: "kubelet", ReportingInstance: nodeName,
		FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
	}
}

// takeTold gives what was told since it was last called.
func (w *world) takeTold() []told {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.told
	w.told = nil
	return all
}

// evicted is what is told of pods that kubelet evicts.
func evicted(pods ...Pod) (all []told) {
	for _, pod := range pods {
		all = append(all, told{pod, Eviction})
	}
	return all
}

// requireTakenDown has kubelet take a pod down, as far as is known, or not: "".
func (w *world) requireTakenDown(cause Cause, pod Pod, why ...any) {
	w.t.Helper()
	got, is := w.w.TakenDown(pod)
	require.Equal(w.t, cause, got, why...)
	require.Equal(w.t, cause != "", is, why...)
}

// asked gives what the API server was asked since it was last called, in alphabetical order.
func (w *world) asked() (all []string) {
	for _, action := range w.api.Actions() {
		var selector string
		switch a := action.(type) {
		case clienttest.ListAction:
			selector = a.GetListRestrictions().Fields.String()
		case clienttest.WatchAction:
			selector = a.GetWatchRestrictions().Fields.String()
		default:
			continue
		}
		all = append(all, strings.Join([]string{action.GetVerb(), action.GetResource().Resource, action.GetNamespace(), selector}, " "))
	}
	w.api.ClearActions()
	slices.Sort(all)
	return all
}

// watches is what the API server is asked to watch a namespace.
func watches(namespace string) []string { return watchesFor(Eviction, namespace) }

// watchesFor is what the API server is asked to watch a namespace for a cause.
func watchesFor(cause Cause, namespace string) []string {
	selector := "involvedObject.kind=Pod,reason=" + string(cause)
	return []string{"list events " + namespace + " " + selector, "watch events " + namespace + " " + selector}
}

func TestEventsAreWatchedOnlyWherePodsWaitUnderPressure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue") })
		assert.Empty(t, w.asked(), "no pressure")
		w.does(func() { w.w.Leave("blue") })
		w.does(func() { w.w.SetPressure(true) })
		w.pass(time.Hour)
		assert.Empty(t, w.asked(), "nobody waits")
		w.does(func() { w.w.Enter("") })
		assert.Empty(t, w.asked(), "all namespaces are never watched")
		w.does(func() { w.w.Enter("blue") })
		assert.Equal(t, watches("blue"), w.asked())
		w.does(func() { w.w.Enter("blue"); w.w.Enter("green") })
		assert.Equal(t, watches("green"), w.asked())
		w.pass(time.Hour)
		assert.Empty(t, w.asked())
	})
}

// kubelet evicts before it says that the node runs short.
func TestEvictionsAreToldThatWereThereAndThatCome(t *testing.T) {
	inWorld(t, func(w *world) {
		early := w.evicts("blue", "early")
		w.does(func() { w.w.Enter("blue"); w.w.SetPressure(true) })
		assert.Equal(t, evicted(early), w.takeTold())
		late := w.evicts("blue", "late")
		assert.Equal(t, evicted(late), w.takeTold())
		newer := w.evicts("blue", "newer", func(e *corev1.Event) { // as the API of events.k8s.io has it
			e.Source, e.FirstTimestamp, e.LastTimestamp = corev1.EventSource{}, metav1.Time{}, metav1.Time{}
			e.EventTime = metav1.NowMicro()
		})
		assert.Equal(t, evicted(newer), w.takeTold())
		w.evicts("green", "elsewhere")
		assert.Empty(t, w.takeTold(), "nobody waits there")

		for _, pod := range []Pod{early, late, newer} {
			w.requireTakenDown(Eviction, pod, pod.Name)
		}
		for _, pod := range []Pod{
			{Namespace: "blue", Name: "early", UID: "uid-other"}, {Namespace: "blue", Name: "other", UID: "uid-early"},
			{Namespace: "green", Name: "early", UID: "uid-early"},
		} {
			w.requireTakenDown("", pod, "an event is believed of the pod that it names: %v", pod)
		}
	})
}

func TestOnlyTheNodesOwnKubeletIsBelieved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue"); w.w.SetPressure(true) })
		other := w.evicts("blue", "other", func(e *corev1.Event) { e.Source.Component = "descheduler" })
		elsewhere := w.evicts("blue", "elsewhere", func(e *corev1.Event) { e.Source.Host = "node-2" })
		assert.Empty(t, w.takeTold())
		w.requireTakenDown("", other)
		w.requireTakenDown("", elsewhere)
	})
}

// A kubelet that was restarted may start a pod again that it began to evict.
func TestAnEvictionIsNotBelievedForEver(t *testing.T) {
	inWorld(t, func(w *world) {
		old := w.evicts("blue", "old")
		w.pass(Believed)
		w.does(func() { w.w.Enter("blue"); w.w.SetPressure(true) })
		assert.Empty(t, w.takeTold())
		w.requireTakenDown("", old)
		pod := w.evicts("blue", "pod")
		assert.Equal(t, evicted(pod), w.takeTold())
		w.pass(Believed - time.Second)
		w.requireTakenDown(Eviction, pod)
		w.pass(time.Second)
		w.requireTakenDown("", pod)
	})
}

func TestANamespaceIsWatchedForAMomentAfterTheLastHasLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue"); w.w.Enter("blue"); w.w.SetPressure(true) })
		w.does(func() { w.w.Leave("blue") })
		w.pass(time.Hour)
		assert.Equal(t, watches("blue"), w.asked(), "one waits still")
		w.does(func() { w.w.Leave("blue") })
		w.pass(lingers - time.Second)
		w.does(func() { w.w.Enter("blue") })
		w.pass(lingers)
		seen := w.evicts("blue", "seen")
		assert.Equal(t, evicted(seen), w.takeTold())
		assert.Empty(t, w.asked(), "it is the same watch")

		w.does(func() { w.w.Leave("blue") })
		w.pass(lingers + time.Second)
		w.requireTakenDown("", seen, "nothing is kept of it")
		unseen := w.evicts("blue", "unseen")
		assert.Empty(t, w.takeTold())
		w.does(func() { w.w.Enter("blue") })
		assert.ElementsMatch(t, evicted(seen, unseen), w.takeTold(), "a new watch begins with what is there")
	})
}

func TestNothingIsWatchedWhenThePressureIsOver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue"); w.w.Enter("green"); w.w.SetPressure(true) })
		w.does(func() { w.w.Leave("green") })
		assert.Len(t, w.asked(), 4)
		w.does(func() { w.w.SetPressure(false) })
		pod := w.evicts("blue", "pod")
		assert.Empty(t, w.takeTold())
		w.does(func() { w.w.SetPressure(true) })
		assert.Equal(t, watches("blue"), w.asked(), "in green nobody waits any more")
		assert.Equal(t, evicted(pod), w.takeTold())
	})
}

func TestAnEventThatIsGoneIsForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		w.does(func() { w.w.Enter("blue"); w.w.SetPressure(true) })
		pod := w.evicts("blue", "pod")
		w.requireTakenDown(Eviction, pod)
		require.NoError(t, w.api.CoreV1().Events("blue").Delete(t.Context(), "pod.18a", metav1.DeleteOptions{}))
		synctest.Wait()
		w.requireTakenDown("", pod)
	})
}

// That the right is missing is said once, however many namespaces there are and however
// often it is tried.
func TestWithoutTheRightOneLineSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		var allowed atomic.Bool
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
		w.api.PrependReactor("list", "events", func(clienttest.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, forbidden
		})
		w.api.PrependWatchReactor("events", func(clienttest.Action) (bool, watch.Interface, error) {
			return !allowed.Load(), nil, forbidden
		})
		w.does(func() { w.w.Enter("blue"); w.w.Enter("green"); w.w.SetPressure(true) })
		w.pass(10 * time.Minute)
		assert.Equal(t, []string{
			"warning: cannot watch the events of evictions and preemptions, for want of the right to list and watch events " +
				"(evictions.watch of the chart brings it): kubelet's end of a pod that waits in the gate lasts " +
				"until that wait is over, or kubelet gives up; trying again until it works",
		}, w.logged())

		pod := w.evicts("blue", "pod")
		allowed.Store(true)
		w.pass(2 * time.Minute)
		assert.Equal(t, evicted(pod), w.takeTold())
		assert.Equal(t, []string{"info: watching the events of evictions and preemptions again"}, w.logged())
	})
}

// logged gives what was logged since it was last called.
func (w *world) logged() (lines []string) {
	for _, entry := range w.log.AllEntries() {
		lines = append(lines, entry.Level.String()+": "+entry.Message)
	}
	w.log.Reset()
	return lines
}

func TestTheCacheKeepsLittleOfAnEvent(t *testing.T) {
	t.Parallel()
	event := evictionOf("blue", "pod")
	event.Annotations = map[string]string{"offending_containers": "app"}
	trimmed, err := trim(event)
	require.NoError(t, err)
	kept, ok := trimmed.(*corev1.Event)
	require.True(t, ok)
	assert.Empty(t, kept.Message)
	assert.Empty(t, kept.Annotations)
	assert.Equal(t, podOf(event), podOf(kept))
	again, err := trim(kept)
	require.NoError(t, err)
	assert.Equal(t, kept, again)
}
