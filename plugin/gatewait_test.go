package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAPodThatIsDeletedAtTheGateStartsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("deleted").runs()
	a := p.waitsAtGate("app")

	p.isDeleted()
	require.ErrorContains(t, a.result(), "exit status 1")
	require.ErrorContains(t, a.err, string(reasons.Deleted))
	assert.Equal(t, runtimetest.Exited, a.ctr.Status().State)
	n.noHookIsLeft()
	waiting, starting := n.names()
	assert.Empty(t, waiting, "the pod has lost its place")
	assert.Equal(t, []string{"holder"}, starting)
}
