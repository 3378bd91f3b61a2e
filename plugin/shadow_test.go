package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const oneInShadow = `spec: {mode: Shadow, throttleConfig: {maxConcurrent: {value: 1}}}`

func TestStatusShowsTheModeAndThePodsThatWouldWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow, standalone)
	n.occupy("holder")
	n.pod("second").runs().startsNow("app")
	status := n.d.Status()
	assert.Equal(t, v1alpha1.ModeShadow, status.Config.Mode)
	require.Len(t, status.Waiting, 1)
	assert.True(t, status.Waiting[0].Shadow)
	require.Len(t, status.Starting, 1)
	assert.False(t, status.Starting[0].Shadow)
	why, err := n.d.Status().Why("default", "second")
	require.NoError(t, err)
	assert.True(t, why.Shadow)
}

// Pods that wait when the mode becomes Shadow start. They count as starts under way when the mode is Enforce again.
func TestTheModeChangesUnderWay(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	a := n.pod("a").runs()
	waits := a.waitsAtGate("app")
	n.reconfigure(oneInShadow)
	waits.succeeds()
	b := n.pod("b").runs()
	b.startsNow("app")
	waiting, _ := n.names()
	assert.Equal(t, []string{"a", "b"}, waiting)
	n.noHookIsLeft()

	n.reconfigure(oneAtATime)
	n.eventually("all starts count", func() bool {
		waiting, starting := n.names()
		return len(waiting) == 0 && len(starting) == 3
	})
	last := n.pod("last").runs().waitsAtGate("app")
	holder.getsReady()
	a.getsReady()
	b.getsReady()
	last.succeeds()
}
