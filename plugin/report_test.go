package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestANodeReportsWaitingPodsAndTheirReasons(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	var n v1alpha1.PacemakerNodeStatus
	countPods(&n, admin.NewStatus(noon, throttle.Snapshot{
		Limit: 2,
		Held:  throttle.Held{Reason: reasons.Pressure, Signal: throttle.SignalIOPressure},
		Starting: []throttle.TicketView{
			{UID: "a", Slot: true}, {UID: "b"},
		},
		Waiting: []throttle.TicketView{
			{UID: "c", Since: noon}, {UID: "d", Arrived: noon.Add(-time.Hour), Since: noon.Add(-time.Minute)},
			{UID: "e", Reason: reasons.Preparing, Arrived: noon.Add(-time.Hour)},
		},
	}, nil))
	since := metav1.NewTime(noon.Add(-time.Minute).Truncate(time.Second))
	require.NotNil(t, n.WaitingSince)
	assert.True(t, n.WaitingSince.Equal(&since))
	n.WaitingSince = nil
	assert.Equal(t, v1alpha1.PacemakerNodeStatus{
		Limit: 2, Starting: 1, Waiting: 2, HeldBy: "Pressure", Signal: "pressure.io.some",
	}, n)

	var idle v1alpha1.PacemakerNodeStatus
	countPods(&idle, admin.NewStatus(noon, throttle.Snapshot{Held: throttle.Held{Reason: reasons.Rate}}, nil))
	assert.Zero(t, idle, "a limit that holds no pod is not reported")
}

func TestANodeReportsHowPodsWait(t *testing.T) {
	t.Parallel()
	open, shut := admin.Room{Installed: true}, admin.Room{Installed: true, WhyNot: "the folder changes"}
	for _, c := range []struct {
		room    admin.Room
		gateOff string
		want    v1alpha1.WaitMethod
		says    string
	}{
		{admin.Room{}, "", v1alpha1.WaitGate, ""},
		{admin.Room{}, "too old", v1alpha1.WaitRefusal, "pods are refused, and kubelet tries again: too old"},
		{open, "", v1alpha1.WaitRoom, ""},
		{open, "too old", v1alpha1.WaitRoom, "pods that cannot wait in the room are refused, and kubelet tries again: too old"},
		{shut, "", v1alpha1.WaitGate, ""},
		{shut, "too old", v1alpha1.WaitRefusal, "pods are refused, and kubelet tries again: too old"},
	} {
		method, says := waitMethod(c.room, c.gateOff)
		assert.Equal(t, c.want, method)
		assert.Equal(t, c.says, says)
	}
}

func TestANodeReportsNoModeWithoutAConfigAndNoWaitMethodWithoutARuntime(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	before := c.d.nodeStatus()
	assert.Empty(t, before.Config)
	assert.Empty(t, before.Mode)
	assert.Empty(t, c.d.Status().Config.Mode)
	assert.Empty(t, before.WaitMethod, "no pod waits")

	c.starts()
	c.eventually("the config is in force", func() bool { return c.d.nodeStatus().Config != "" })
	assert.Equal(t, v1alpha1.ModeEnforce, c.d.nodeStatus().Mode)
	assert.Equal(t, v1alpha1.WaitGate, c.d.nodeStatus().WaitMethod)
}
