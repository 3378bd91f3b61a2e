package podwatch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

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
	api := newAPIServer(t)
	api.set(webPod())
	api.set(webPod(named("other"), uid("", "uid-2")))
	w, told, _, stop := run(t, api.client())
	defer stop()
	eventually(t, "healthy", w.Healthy)
	pod, ok := w.Get("uid-1")
	require.True(t, ok)
	require.Nil(t, pod.Facts, "no policy needs facts")
	require.Len(t, told.take(), 2)
	n := 0

	has := func(uid, value string) func() bool {
		return func() bool {
			pod, ok := w.Get(uid)
			return ok && pod.Facts != nil && pod.Facts.Values["taker"] == value
		}
	}
	w.ExtractFacts(valueOf("one"), time.Millisecond)
	eventually(t, "the fact of a known pod", has("uid-1", "one"))
	eventually(t, "the fact of the other pod", has("uid-2", "one"))
	eventually(t, "both changes are reported", func() bool { n += len(told.take()); return n == 2 })

	api.set(webPod(named("new"), uid("", "uid-3")))
	eventually(t, "the fact of a new pod", has("uid-3", "one"))

	w.ExtractFacts(valueOf("two"), 0)
	for _, uid := range []string{"uid-1", "uid-2", "uid-3"} {
		eventually(t, "the new fact of "+uid, has(uid, "two"))
	}
	w.ExtractFacts(nil, 0)
	api.set(webPod(named("last"), uid("", "uid-4")))
	eventually(t, "the pod is known", func() bool { _, ok := w.Get("uid-4"); return ok })
	pod, _ = w.Get("uid-4")
	require.Nil(t, pod.Facts)
}

// Facts are missing while the API server is away. They come when it is back.
func TestFactsAreTakenOnceTheServerIsBack(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t)
	api.set(webPod())
	w, _, _, stop := run(t, api.client())
	defer stop()
	eventually(t, "healthy", w.Healthy)
	api.stop()
	w.ExtractFacts(valueOf("one"), 0)
	eventually(t, "unhealthy", func() bool { return !w.Healthy() })
	api.start()
	eventually(t, "facts", func() bool {
		pod, _ := w.Get("uid-1")
		return pod.Facts != nil
	})
}

// The API server answers a list for new facts from its memory: any that is streamed, and another one because it may be as
// old as the known state.
func TestFactsAreTakenFromTheServersMemory(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		api := newAPIServer(t)
		api.plainLists = plain
		api.set(webPod())
		asked := make(chan url.Values, 100)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query()
			api.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: front.URL})
		require.NoError(t, err)
		w, _, _, stop := run(t, client)
		t.Cleanup(stop)
		eventually(t, "healthy", w.Healthy)
		for len(asked) > 0 {
			<-asked
		}
		w.ExtractFacts(valueOf("one"), time.Millisecond)
		eventually(t, "facts", func() bool {
			pod, _ := w.Get("uid-1")
			return pod.Facts != nil
		})
		lists := 0
		for len(asked) > 0 {
			q := <-asked
			if q.Get("watch") == "" {
				require.Equal(t, "2", q.Get("resourceVersion"), "%v", q)
			}
			if q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
				lists++
			}
		}
		require.Positive(t, lists)
	}
}

// However often a list is asked for, one is made, at the earliest of the moments that were drawn.
func TestOneListServesAllThatAskForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(webPod())
		begun, _ := watches(api)
		w, _, _, stop := run(t, api)
		defer stop()
		synctest.Wait()
		for len(begun) > 0 {
			<-begun
		}
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
		require.Len(t, begun, 1)
	})
}

// Which selectors select a pod is known from the next list on, or from the next change of the pod.
func TestPodsAreSelectedByTheirLabels(t *testing.T) {
	t.Parallel()
	api := newAPIServer(t)
	api.set(webPod(func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web"} }))
	w, _, _, stop := run(t, api.client())
	defer stop()
	eventually(t, "healthy", w.Healthy)
	of := func(uid string) (selected []string, before bool) {
		pods, listed := w.OnNode()
		require.True(t, listed)
		for _, p := range pods {
			if p.UID == uid {
				return p.Selected, p.SelectedBefore
			}
		}
		return nil, false
	}
	is := func(uid string, want ...string) func() bool {
		return func() bool {
			selected, before := of(uid)
			return !before && slices.Equal(selected, want)
		}
	}
	require.True(t, is("uid-1")())
	w.SelectBy(func(namespace string, labels map[string]string) []string { return []string{namespace, labels["app"]} }, time.Hour)
	selected, before := of("uid-1")
	require.Nil(t, selected, "not before the next list")
	require.True(t, before)
	api.set(webPod(named("other"), uid("", "uid-2")))
	eventually(t, "a new pod is selected", is("uid-2", "ns", ""))
	w.SelectBy(func(_ string, labels map[string]string) []string { return []string{labels["app"]} }, time.Hour)
	selected, before = of("uid-2")
	require.Equal(t, []string{"ns", ""}, selected, "as before, until the next list")
	require.True(t, before)
	w.SelectBy(func(_ string, labels map[string]string) []string { return []string{labels["app"]} }, 0)
	eventually(t, "a known pod is selected", is("uid-1", "web"))
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
