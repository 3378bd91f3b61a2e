package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

func TestSlowHandlersHoldNoPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold, o.RefuseAt = maxHold, waiting.RefuseContainer }),
		tuned(func(r *tuning) { r.savedHold = testTimeout })) // as much can be owed, which takes ten minutes to earn
	n.occupy("holder")
	handlerOf(n.d).Took(time.Now(), "RunPodSandbox", time.Hour)
	p := n.pod("job", restarted("Never")).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	assert.False(t, n.holding(), "a handler waited")
}
