package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

func TestNothingIsRefusedAtTheSandboxWhereTheRuntimeKeepsIt(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.RefuseAt = waiting.RefuseSandbox }),
		onRuntime(func(o *runtimetest.Options) { o.Version = "2.2.5" }))
	n.occupy("holder")
	for i := range 4 {
		p := n.pod(fmt.Sprintf("crowd-%d", i)).runs()
		_, err := p.create("app")
		assert.ErrorContains(t, err, "waiting to start: Concurrency", "the gate is not used on this runtime either") //nolint:testifylint // the later assertions are of interest, too
	}
	sandboxes, containers := n.refused()
	assert.Zero(t, sandboxes)
	assert.EqualValues(t, 4, containers)
	assert.Contains(t, n.d.waiting.Refusals.NotAtSandbox(), "containerd 2.2.5 keeps what is left")
}
