package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestEventsAreWrittenOnPods(t *testing.T) {
	t.Parallel()
	kube := kubefake.NewClientset()
	notices := newPodNotices(kube, "node", "blue")
	defer notices.stop()
	now := time.Unix(1000, 0)
	l := throttle.New(now, throttle.Settings{MaxConcurrent: 1, StartTimeout: time.Second})
	stuck := l.Join(now, throttle.Request{UID: "uid-1", Name: "default/stuck"})
	stuck.TryStart(now)
	over := l.Join(now, throttle.Request{UID: "uid-2", Name: "default/over"})
	over.Expire(now.Add(500 * time.Millisecond))
	expired := l.Join(now, throttle.Request{UID: "uid-3", Name: "default/expired"})
	expired.Expire(now.Add(600 * time.Millisecond))
	l.Advance(now.Add(1200 * time.Millisecond))
	happened, lost := l.Drain()
	require.Zero(t, lost)
	for _, e := range happened {
		notices.tell(e)
	}
	notices.node("Warning", "HandlersTooSlow", "too slow")
	want := map[string]string{
		"node":    "HandlersTooSlow Warning too slow",
		"stuck":   "StartStuck Warning Not ready 1.2s after it was admitted; the start no longer counts and others go on",
		"over":    "StartAdmitted Normal Admitted over the limit after 500ms (GateDeadline)",
		"expired": "GateExpired Warning The wait in the gate ended without a turn; kubelet tries again, the pod keeps its place",
	}
	got := map[string]string{}
	require.Eventually(t, func() bool {
		list, err := kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range list.Items {
			assert.Equal(t, "pod-pacemaker-blue", e.Source.Component)
			if _, told := got[e.InvolvedObject.Name]; !told {
				got[e.InvolvedObject.Name] = e.Reason + " " + e.Type + " " + e.Message
			}
		}
		return len(got) == len(want)
	}, patience, 5*time.Millisecond)
	assert.Equal(t, want, got)
}
