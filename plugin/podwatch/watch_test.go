package podwatch

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

// changes records the changes that a Watch reports, one line each.
type changes struct {
	mu    sync.Mutex
	lines []string
}

func (c *changes) add(pod Pod, deleted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	verb := "set"
	if deleted {
		verb = "deleted"
	}
	c.lines = append(c.lines, fmt.Sprintf("%s %s/%s %s %s", verb, pod.Namespace, pod.Name, pod.UID, pod.Phase))
}

// take returns the lines since the last take.
func (c *changes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

// run starts a watch of node-a and stops it when the test ends. Inside a synctest bubble, use stop instead.
func run(t testing.TB, client kubernetes.Interface) (w *Watch, told *changes, log *logtest.Hook, stop func()) {
	t.Helper()
	logger, log := logtest.NewNullLogger()
	told = &changes{}
	w = New(Options{Client: kubetest.Of(client), NodeName: "node-a", Log: logger})
	w.OnChange(func(pod Pod, deleted bool) {
		known, ok := w.Get(pod.UID)
		assert.True(t, deleted != ok && (deleted || reflect.DeepEqual(pod, known)), "Get returns the state that is being reported")
		told.add(pod, deleted)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	return w, told, log, func() {
		cancel()
		running.Wait()
	}
}

// fakes is a fake API with helpers that wait until the watch has seen the change.
type fakes struct {
	t *testing.T
	*fake.Clientset
}

func (f fakes) create(p *corev1.Pod) {
	_, err := f.CoreV1().Pods(p.Namespace).Create(f.t.Context(), p, metav1.CreateOptions{})
	require.NoError(f.t, err)
	synctest.Wait()
}

func (f fakes) remove(p *corev1.Pod) {
	require.NoError(f.t, f.CoreV1().Pods(p.Namespace).Delete(f.t.Context(), p.Name, metav1.DeleteOptions{}))
	synctest.Wait()
}

// bubble runs f with a watch of a fake API that has the pods. Time passes only when all goroutines wait.
func bubble(t *testing.T, f func(t *testing.T, api fakes, w *Watch, told *changes), pods ...*corev1.Pod) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := fakes{t, fake.NewClientset()}
		for _, p := range pods {
			require.NoError(t, api.Tracker().Add(p))
		}
		w, told, _, stop := run(t, api)
		defer stop()
		synctest.Wait()
		f(t, api, w, told)
	})
}

// phase, uid and mirror change a pod; a changed pod needs a new version.
func phase(version string, phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion, p.Status.Phase = version, phase }
}

func uid(version string, uid types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion, p.UID = version, uid }
}

func mirror(hash string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash} }
}

func named(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name = name }
}

// Only the pods of the node are asked for, and of these none is listed that has ended. A pod that ends is reported, and not
// kept.
func TestPodsOfOtherNodesAndPodsThatHaveEndedAreNotKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, told *changes) {
		asked := map[string]string{}
		for _, action := range api.Actions() {
			switch a := action.(type) {
			case clienttesting.ListActionImpl:
				asked[a.GetVerb()] = a.GetListRestrictions().Fields.String()
			case clienttesting.WatchActionImpl:
				asked[a.GetVerb()] = a.GetWatchRestrictions().Fields.String()
			}
		}
		require.Equal(t, map[string]string{
			"list": "spec.nodeName=node-a,status.phase!=Failed,status.phase!=Succeeded", "watch": "spec.nodeName=node-a",
		}, asked)
		over := webPod(phase("2", corev1.PodSucceeded))
		_, err := api.CoreV1().Pods("ns").Update(t.Context(), over, metav1.UpdateOptions{})
		require.NoError(t, err)
		synctest.Wait()
		_, known := w.Get("uid-1")
		require.False(t, known)
		api.remove(over)
		require.Equal(t, []string{"set ns/web uid-1 ", "set ns/web uid-1 Succeeded", "deleted ns/web uid-1 Succeeded"}, told.take())
	}, webPod())
}

func TestMirrorPod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, told *changes) {
		pod, ok := w.Get("hash-1")
		require.True(t, ok)
		require.True(t, pod.Static)
		_, ok = w.Get("uid-1")
		require.False(t, ok, "NRI does not know the mirror pod's own uid")

		// kubelet creates a deleted mirror pod again. It is another pod for the API, and the same for the node.
		api.remove(webPod())
		api.create(webPod(uid("2", "uid-2"), mirror("hash-1")))
		_, ok = w.Get("hash-1")
		require.True(t, ok)

		// A changed manifest makes another pod for both.
		api.remove(webPod())
		api.create(webPod(uid("3", "uid-3"), mirror("hash-2")))
		_, ok = w.Get("hash-1")
		require.False(t, ok)
		_, ok = w.Get("hash-2")
		require.True(t, ok)
		require.Equal(t, []string{
			"set ns/web hash-1 ", "deleted ns/web hash-1 ", "set ns/web hash-1 ", "deleted ns/web hash-1 ", "set ns/web hash-2 ",
		}, told.take())
	}, webPod(mirror("hash-1")))
}

// Any user may write the annotation of a mirror pod. It must not make another pod look static, or make it forgotten.
func TestFalseMirrorPod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, told *changes) {
		liar := func(version string) *corev1.Pod { return webPod(named("liar"), uid(version, "uid-2"), mirror("uid-1")) }
		static := func() bool {
			pod, ok := w.Get("uid-1")
			require.True(t, ok)
			return pod.Static
		}
		api.create(liar("1"))
		require.False(t, static())
		api.remove(liar("1"))
		require.False(t, static())
		require.Equal(t, []string{"set ns/web uid-1 "}, told.take())

		// If the false one comes first, the pod that really has this uid takes over.
		api.remove(webPod())
		api.create(liar("2"))
		require.True(t, static())
		api.create(webPod())
		require.False(t, static())
		api.remove(liar("2"))
		require.False(t, static())
	}, webPod())
}

func TestAwait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, _ *changes) {
		pod, ok := w.Await(t.Context(), "uid-1")
		require.True(t, ok, "a known pod is returned at once")
		require.Equal(t, "web", pod.Name)

		// Three calls wait for one pod. One of them gives up, and the others are woken.
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		found := make(chan bool, 3)
		for _, ctx := range []context.Context{t.Context(), impatient, t.Context()} {
			go func() {
				pod, ok := w.Await(ctx, "uid-2")
				found <- ok && pod.Name == "late"
			}()
		}
		synctest.Wait()
		require.Empty(t, found)
		time.Sleep(2 * time.Second)
		require.False(t, <-found)
		require.Empty(t, found)
		api.create(webPod(named("late"), uid("2", "uid-2")))
		require.True(t, <-found)
		require.True(t, <-found)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, ok = w.Await(ended, "uid-2")
		require.True(t, ok, "a known pod needs no wait")
		_, ok = w.Await(ended, "unknown")
		require.False(t, ok)
	}, webPod())
}

func TestAPanicDoesNotEndTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fakes{t, fake.NewClientset()}
		logger, log := logtest.NewNullLogger()
		told := &changes{}
		var panics []string
		w := New(Options{
			Client: kubetest.Of(api), NodeName: "node-a", Log: logger,
			OnPanic: func(part string, fault any, fields logrus.Fields) {
				panics = append(panics, fmt.Sprint(part, ": ", fault, " ", fields))
			},
		})
		w.OnChange(told.add)
		w.trim = func(p *corev1.Pod) Pod {
			if p.Name == "strange" {
				panic("unforeseen")
			}
			return trim(p)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Run(ctx) })
		synctest.Wait()
		api.create(webPod(named("strange"), uid("1", "uid-s"), mirror("hash")))
		api.create(webPod())
		require.Equal(t, []string{"set ns/strange hash ", "set ns/web uid-1 "}, told.take())
		pod, known := w.Get("hash")
		require.True(t, known)
		require.Equal(t, Pod{UID: "hash", Namespace: "ns", Name: "strange", Static: true}, pod)
		require.Empty(t, log.AllEntries())
		require.Equal(t, []string{"podwatch: unforeseen map[pod_name:strange pod_namespace:ns pod_uid:hash]"}, panics)
		cancel()
		running.Wait()
	})
}

// A test with an API server cannot cause these changes on demand.
func TestChange(t *testing.T) {
	t.Parallel()
	logger, log := logtest.NewNullLogger()
	told := &changes{}
	w := New(Options{Client: kubetest.Of(fake.NewClientset()), NodeName: "node-a", Log: logger})
	w.OnChange(told.add)
	first, second := w.keep(webPod()), w.keep(webPod(uid("2", "uid-2")))
	w.change(nil, first)
	w.change(first, first)
	w.change(first, w.keep(webPod()))
	require.Equal(t, []string{"set ns/web uid-1 "}, told.take(), "a list without news is no change")
	w.change(first, second)
	require.Equal(t, []string{"deleted ns/web uid-1 ", "set ns/web uid-2 "}, told.take(), "the pod was replaced between two lists")
	w.change(first, nil)
	require.Empty(t, told.take(), "a forgotten pod is not reported again")
	w.change(second, nil)
	require.Equal(t, []string{"deleted ns/web uid-2 "}, told.take())

	require.Empty(t, log.AllEntries())
	w.change(nil, w.keep(webPod()))
	w.change(nil, w.keep(webPod(named("liar"), uid("3", "uid-3"), mirror("uid-1"))))
	said := log.LastEntry()
	require.Equal(t, "pod ns/liar: a mirror pod with the uid of another pod is ignored", said.Message)
	require.Equal(t, logrus.Fields{"pod_namespace": "ns", "pod_name": "liar", "pod_uid": "uid-1"}, said.Data)
}
