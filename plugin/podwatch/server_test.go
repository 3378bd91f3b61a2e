package podwatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eventually waits for a condition that the watch brings about in real time. Only a failure reaches the limit.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, 5*time.Millisecond, what)
}

func elsewhere(p *corev1.Pod) { p.Spec.NodeName, p.Name, p.UID = "node-b", "far", "uid-far" }

// The watch works over HTTP, with the streamed initial list and with an older server's plain one. It reports each
// change, and only this node's pods. Pods that have ended are not listed and not kept, but their end is reported.
func TestServer(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"streamed list": false, "plain list": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			api.plainLists = plain
			api.set(webPod())
			api.set(webPod(elsewhere))
			for n := range 20 {
				name := fmt.Sprint("old-", n)
				api.set(webPod(named(name), uid("", types.UID(name)), phase("", corev1.PodFailed)))
			}
			w, told, log, stop := run(t, api.client())
			defer stop()
			eventually(t, "healthy", w.Healthy)

			api.set(webPod(elsewhere, phase("", corev1.PodRunning)))
			api.set(webPod(phase("", corev1.PodRunning)))
			api.set(webPod(phase("", corev1.PodSucceeded)))
			api.remove(webPod(phase("", corev1.PodSucceeded)))
			api.set(webPod(uid("", "uid-2")))
			_, ok := w.Await(t.Context(), "uid-2")
			require.True(t, ok)
			_, ok = w.Get("uid-far")
			require.False(t, ok)
			stop()
			require.Equal(t, []string{
				"set ns/web uid-1 ", "set ns/web uid-1 Running", "set ns/web uid-1 Succeeded", "deleted ns/web uid-1 Succeeded", "set ns/web uid-2 ",
			}, told.take())
			require.Len(t, w.pods, 1)
			require.Empty(t, messages(log))
		})
	}
}

// While the API server is away, Healthy is false, and known pods stay known. When it is back, all changes since then
// are reported: deletions, pods of the same name with another uid, new pods. Unchanged pods are not reported.
func TestServerAway(t *testing.T) {
	t.Parallel()
	for name, compact := range map[string]bool{"and keeps its history": false, "and forgets its history": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			gone, same := webPod(named("gone"), uid("", "uid-gone")), webPod(named("same"), uid("", "uid-same"))
			for _, p := range []*corev1.Pod{gone, same, webPod()} {
				api.set(p)
			}
			w, told, log, stop := run(t, api.client())
			defer stop()
			eventually(t, "healthy", w.Healthy)
			require.Len(t, told.take(), 3)

			api.stop()
			eventually(t, "the outage is logged", func() bool { return len(messages(log)) > 0 })
			require.False(t, w.Healthy())
			_, ok := w.Get("uid-gone")
			require.True(t, ok)
			api.remove(gone)
			api.remove(webPod())
			api.set(webPod(uid("", "uid-2")))
			api.set(webPod(named("new"), uid("", "uid-new")))
			if compact {
				api.compact()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			api.start()
			for _, uid := range []string{"uid-2", "uid-new"} {
				_, ok := w.Await(ctx, uid)
				require.True(t, ok, uid)
			}
			eventually(t, "the watch is healthy again", w.Healthy)
			stop()
			require.ElementsMatch(t, []string{
				"deleted ns/gone uid-gone ", "deleted ns/web uid-1 ", "set ns/web uid-2 ", "set ns/new uid-new ",
			}, told.take())
			require.Len(t, messages(log), 2, "one line when the server went away, one when it came back")
		})
	}
}
