package podwatch

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// valueOf returns a function that gives every pod this value.
func valueOf(value string) func(*corev1.Pod) startpolicy.Facts {
	return func(p *corev1.Pod) startpolicy.Facts {
		return startpolicy.Facts{Labels: p.Labels, Values: map[string]string{"taker": value}}
	}
}

// The facts of known pods come from a new list, those of other pods when they come. All are reported.
func TestFactsAreTakenOfAllPods(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, told *changes) {
		have := func(value string, uids ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, uid := range uids {
				pod, _ := w.Get(uid)
				require.NotNil(t, pod.Facts, uid)
				require.Equal(t, value, pod.Facts.Values["taker"], uid)
			}
		}
		pod, _ := w.Get("uid-1")
		require.Nil(t, pod.Facts, "no policy needs facts")
		require.Len(t, told.take(), 2)
		w.ExtractFacts(valueOf("one"), time.Minute)
		have("one", "uid-1", "uid-2")
		require.Len(t, told.take(), 2)
		api.create(webPod(named("new"), uid("", "uid-3")))
		have("one", "uid-3")
		w.ExtractFacts(valueOf("two"), 0)
		have("two", "uid-1", "uid-2", "uid-3")
		w.ExtractFacts(nil, 0)
		api.create(webPod(named("last"), uid("", "uid-4")))
		pod, known := w.Get("uid-4")
		require.True(t, known)
		require.Nil(t, pod.Facts)
	}, webPod(), webPod(named("other"), uid("", "uid-2")))
}

// While the API server is away, known pods stay known, and facts are missing. They come when it is back. It is logged once
// that it went away, and once that it is back.
func TestFactsAreTakenOnceTheServerIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(webPod())
		var away atomic.Bool
		api.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("away")
		})
		w, _, log, stop := run(t, api)
		synctest.Wait()
		require.True(t, w.Healthy())
		away.Store(true)
		w.ExtractFacts(valueOf("one"), 0)
		is := func(healthy bool, lines int) {
			time.Sleep(2 * time.Minute) // longer than the longest pause between two attempts
			synctest.Wait()
			pod, known := w.Get("uid-1")
			require.True(t, known)
			require.Equal(t, []bool{healthy, healthy}, []bool{w.Healthy(), pod.Facts != nil})
			require.Len(t, log.AllEntries(), lines)
		}
		is(false, 1)
		away.Store(false)
		is(true, 2)
		stop()
		require.False(t, w.Healthy())
		require.Len(t, log.AllEntries(), 2, "a stop is no failure")
	})
}

// However often a list is asked for, one is made, at the earliest of the moments that were drawn.
func TestOneListServesAllThatAskForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, begun := fake.NewClientset(webPod()), 0
		api.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			begun++
			return true, watch.NewFake(), nil
		})
		w, _, _, stop := run(t, api)
		defer stop()
		synctest.Wait()
		begun = 0
		w.ExtractFacts(valueOf("one"), time.Minute)
		for range 10 {
			w.ExtractFacts(valueOf("one"), time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		pod, _ := w.Get("uid-1")
		require.NotNil(t, pod.Facts, "the list came within the shorter time")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, 1, begun)
	})
}

// Which selectors select a pod is known from the next list on, or from the next change of the pod.
func TestPodsAreSelectedByTheirLabels(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, api fakes, w *Watch, _ *changes) {
		is := func(uid string, before bool, want ...string) {
			t.Helper()
			pods, listed := w.OnNode()
			require.True(t, listed)
			p := pods[slices.IndexFunc(pods, func(p Pod) bool { return p.UID == uid })]
			require.Equal(t, before, p.SelectedBefore)
			require.Equal(t, want, p.Selected)
		}
		is("uid-1", false)
		w.SelectBy(func(namespace string, labels map[string]string) []string { return []string{namespace, labels["app"]} }, time.Hour)
		is("uid-1", true)
		api.create(webPod(named("other"), uid("", "uid-2")))
		is("uid-2", false, "ns", "")
		byApp := func(_ string, labels map[string]string) []string { return []string{labels["app"]} }
		w.SelectBy(byApp, time.Hour)
		is("uid-2", true, "ns", "") // until the next list
		w.SelectBy(byApp, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		is("uid-1", false, "web")
	}, webPod(func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }))
}

// Other facts do not make it unknown which selectors select a pod: pods would wait for those that are ready.
func TestOtherFactsLeaveTheSelectionAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, _, stop := run(t, fake.NewClientset(webPod()))
		defer stop()
		synctest.Wait()
		w.SelectBy(func(namespace string, _ map[string]string) []string { return []string{namespace} }, 0)
		time.Sleep(time.Second)
		for _, extract := range []func(*corev1.Pod) startpolicy.Facts{valueOf("one"), nil} {
			w.ExtractFacts(extract, time.Hour)
			pods, _ := w.OnNode()
			require.Len(t, pods, 1)
			require.Equal(t, []string{"ns"}, pods[0].Selected)
		}
	})
}
