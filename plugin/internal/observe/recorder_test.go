package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

func TestEventsAreWritten(t *testing.T) {
	t.Parallel()
	kube := kubefake.NewClientset()
	events := NewRecorder(kubetest.Of(kube), "node", "blue")
	events.Node("Warning", "TooEarly", "the writer does not run yet")
	defer events.Start()()
	events.Pod("uid-1", "default/web", "Normal", "WaitingToStart", "place 1")
	events.Node("Warning", "HandlersTooSlow", "too\x1b[31m\nslow\u202e"+strings.Repeat("w", 64<<10))
	want := map[string]string{
		"Node node": "HandlersTooSlow Warning too [31m slow " + strings.Repeat("w", 1024-len("too [31m slow ")), // what does not fit is left out
		"Pod web":   "WaitingToStart Normal place 1",
	}
	got := map[string]string{}
	require.Eventually(t, func() bool {
		list, err := kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range list.Items {
			assert.Equal(t, "pod-pacemaker-blue", e.Source.Component)
			got[e.InvolvedObject.Kind+" "+e.InvolvedObject.Name] = e.Reason + " " + e.Type + " " + e.Message
		}
		return len(got) == len(want)
	}, time.Minute, 5*time.Millisecond)
	assert.Equal(t, want, got)
}
