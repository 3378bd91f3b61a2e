package podwatch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// valueOf takes one value of a pod, the same for all pods.
func valueOf(value string) func(*corev1.Pod) startpolicy.Facts {
	return func(p *corev1.Pod) startpolicy.Facts {
		return startpolicy.Facts{Labels: p.Labels, Values: map[string]string{"taker": value}}
	}
}

// Facts of pods that are known already are taken from a new list, those of others as they come, and all are told.
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
	require.Nil(t, pod.Facts, "nobody asked")
	require.Len(t, told.take(), 2)
	n := 0

	has := func(uid, value string) func() bool {
		return func() bool {
			pod, ok := w.Get(uid)
			return ok && pod.Facts != nil && pod.Facts.Values["taker"] == value
		}
	}
	w.ExtractFacts(valueOf("one"), time.Millisecond)
	eventually(t, "of a pod that was known", has("uid-1", "one"))
	eventually(t, "of the other", has("uid-2", "one"))
	eventually(t, "both are told", func() bool { n += len(told.take()); return n == 2 })

	api.set(webPod(named("new"), uid("", "uid-3")))
	eventually(t, "of a new pod", has("uid-3", "one"))

	w.ExtractFacts(valueOf("two"), 0)
	for _, uid := range []string{"uid-1", "uid-2", "uid-3"} {
		eventually(t, "anew of "+uid, has(uid, "two"))
	}
	w.ExtractFacts(nil, 0)
	api.set(webPod(named("last"), uid("", "uid-4")))
	eventually(t, "a pod", func() bool { _, ok := w.Get("uid-4"); return ok })
	pod, _ = w.Get("uid-4")
	require.Nil(t, pod.Facts)
}

// While the API server is away, facts are missing; they are taken when it is back.
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

// A list for new facts is no older than what is known: the API server answers it from its memory, streamed or, by an
// older server, at once.
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
			if q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
				require.Equal(t, "2", q.Get("resourceVersion"), "%v", q)
				lists++
			}
		}
		require.Positive(t, lists)
	}
}
