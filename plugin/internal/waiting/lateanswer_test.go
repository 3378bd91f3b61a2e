package waiting

import (
	"context"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// A runtime that has given up a call goes on as if no plugin had answered, and keeps the connection (NRI 0.12.5).
func givenUp(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestAHookOfALateAnswerIsNotMissed(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		for _, name := range []string{"a", "b"} {
			p := n.pod(name).runs()
			ctr := &api.Container{Id: "late-" + name, PodSandboxId: p.sandbox.GetId(), Name: "app"}
			hook, err := n.Container(givenUp(t), p.sandbox, ctr)
			require.NoError(t, err)
			assert.Nil(t, hook)
			time.Sleep(time.Millisecond)
			container{pod: p, Container: ctr}.runs()
			assert.Equal(t, throttle.Starting, p.view().State, "it runs, and counts")
		}
		assert.Empty(t, n.Gate.Off(), "no hook has failed")
	})
}

func TestASandboxThatIsRefusedTooLateIsThere(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		p := n.pod("refused", restarted("Never"))
		p.sandbox.Id = "first"
		require.Error(t, n.Sandbox(t.Context(), p.sandbox))
		p.sandbox.Id = "second"
		require.NoError(t, n.Sandbox(givenUp(t), p.sandbox))
		n.passes(time.Hour)
		assert.Equal(t, throttle.Waiting, p.view().State, "kubelet pulls its images, which takes long")
	})
}
