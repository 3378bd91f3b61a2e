package podwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

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
	w.TakeFacts(valueOf("one"), time.Millisecond)
	eventually(t, "of a pod that was known", has("uid-1", "one"))
	eventually(t, "of the other", has("uid-2", "one"))
	eventually(t, "both are told", func() bool { n += len(told.take()); return n == 2 })

	api.set(webPod(named("new"), uid("", "uid-3")))
	eventually(t, "of a new pod", has("uid-3", "one"))

	w.TakeFacts(valueOf("two"), 0)
	for _, uid := range []string{"uid-1", "uid-2", "uid-3"} {
		eventually(t, "anew of "+uid, has(uid, "two"))
	}
	w.TakeFacts(nil, 0)
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
	w.TakeFacts(valueOf("one"), 0)
	eventually(t, "unhealthy", func() bool { return !w.Healthy() })
	api.start()
	eventually(t, "facts", func() bool {
		pod, _ := w.Get("uid-1")
		return pod.Facts != nil
	})
}

// A list is of the past as soon as it is there: it never replaces another version.
func TestFactsOfAnotherVersionAreLeftOut(t *testing.T) {
	t.Parallel()
	w := New(nil, "node", nil)
	old, err := w.transform(webPod())
	require.NoError(t, err)
	known, ok := old.(*cached)
	require.True(t, ok)
	known.ResourceVersion = "7"
	w.pods["uid-1"] = known
	w.TakeFacts(valueOf("one"), 0)
	fresh, err := w.transform(webPod())
	require.NoError(t, err)
	c, ok := fresh.(*cached)
	require.True(t, ok)
	c.ResourceVersion = "6"
	w.addFacts(c)
	require.Same(t, known, w.pods["uid-1"])
	c.ResourceVersion = "7"
	w.addFacts(c)
	require.Same(t, c, w.pods["uid-1"])
	require.NotNil(t, w.pods["uid-1"].pod.Facts)
}
