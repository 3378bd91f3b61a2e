package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// crash ends a container's process.
func (p *testPod) crash(name string) {
	p.n.t.Helper()
	var found bool
	for _, ctr := range p.started {
		if ctr.ID() == p.running[name] {
			found = true
			require.NoError(p.n.t, ctr.Stop(p.n.ctx, 0))
		}
	}
	require.True(p.n.t, found, "%s runs", name)
}

func TestALoneContainerThatCrashedWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("crashed")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	holder := n.occupy("holder")
	p.crash("app")
	a := p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
	p.becomes(throttle.Starting, reasons.WithinLimits)
}
