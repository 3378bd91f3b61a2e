package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// ofWeb makes a pod one of the Deployment web, whose probes allow a start of 27 s.
func ofWeb(pod *podwatch.Pod) {
	pod.Like, pod.Patience = podwatch.Like{Owner: "Deployment/web", Revision: "1", Images: "i"}, 27*time.Second
}

// The cost of a start predicts the next start of its owner, also in the next daemon.
func TestWhatAStartTookIsExpectedOfTheNext(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	n := newNode(t, noLimit, with(func(o *Options) { o.StateDir = state }))
	first := n.pod("web-1", ofWeb).runs()
	first.startsNow("app")
	first.becomes(throttle.Starting, reasons.WithinLimits)
	cost := func(name string) *admin.Cost {
		w, err := n.d.Status().Why("default", name)
		require.NoError(t, err)
		return w.Cost
	}
	require.NotNil(t, cost("web-1"))
	assert.Equal(t, admin.Cost{Basis: "None", KilledAfterSeconds: 27}, *cost("web-1"))
	require.NoError(t, n.d.Alive(t.Context()), "the start is measured from its beginning")
	first.getsReady()
	first.becomes(throttle.Started, reasons.Ready)
	assert.Nil(t, cost("web-1"), "the start is over")
	n.eventually("the cost is learned", func() bool { return len(n.d.Costs().Costs) == 4 })
	assert.Positive(t, n.d.Costs().Machine.Cores)

	n.stopDaemon()
	n.startDaemon()
	n.connected()
	second := n.pod("web-2", ofWeb).runs()
	second.startsNow("app")
	second.becomes(throttle.Starting, reasons.WithinLimits)
	expected := cost("web-2")
	require.NotNil(t, expected)
	assert.Equal(t, "Owner", expected.Basis)
	assert.Equal(t, 1, expected.Count)
}
