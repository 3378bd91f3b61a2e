package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The runtime rejects hooks, so that a container fails that gets one.
func TestWithoutAGatePodsAreRefusedAndNoneFails(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]nodeOption{
		"never":          with(func(o *Options) { o.Gate = waiting.GateNever }),
		"no path":        with(func(o *Options) { o.GatePath = "" }),
		"old containerd": func(n *node) { n.runtime.Version = "v2.2.5" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, oneAtATime, opt, func(n *node) { n.runtime.RejectHooks = true })
			assert.NotEmpty(t, n.d.waiting.Gate.Off())
			holder := n.occupy("holder")
			p := n.pod("refused").runs()
			_, err := p.create("app")
			require.ErrorContains(t, err, "kubelet tries again")
			holder.getsReady()
			p.startsNow("app")
			p.becomes(throttle.Starting, reasons.WithinLimits)
		})
	}
}
