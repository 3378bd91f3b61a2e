package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestStatusAndWhyTellOfEveryPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.Gate = waiting.GateAlways }))
	done := n.strangePod("done").runs()
	done.startsNow("app")
	require.NoError(t, done.sandbox.Stop(n.ctx))
	holder := n.strangePod("holder").runs()
	holder.startsNow("app")
	waits := n.strangePod("waits").runs()
	waits.waitsAtGate("app")
	absent := n.strangePod("absent").runs()

	s := n.d.Status()
	assert.Equal(t, "containerd", s.Runtime.Name)
	assert.Equal(t, "v2.4.2", s.Runtime.Version)
	assert.True(t, s.Runtime.Connected && s.Runtime.Synchronized)
	assert.Empty(t, s.Runtime.LastError)
	assert.Equal(t, "test", s.Config.Name)
	require.NotNil(t, s.Config.Spec)
	assert.True(t, s.Gate.Usable, s.Gate.WhyNot)
	assert.Equal(t, 1, s.Gate.Waiters)
	require.NotNil(t, s.HeldBy)
	assert.Equal(t, reasons.Concurrency, s.HeldBy.Reason)
	require.Len(t, s.Starting, 1)
	assert.Equal(t, holder.uid, s.Starting[0].UID)
	require.Len(t, s.Waiting, 1)
	require.Len(t, s.Preparing, 1)
	require.Len(t, s.Ended, 1)
	assert.Nil(t, s.PodWatch)

	why := func(name string) admin.Why {
		w, err := n.d.Status().Why("default", name)
		require.NoError(t, err)
		return w
	}
	w := why("waits")
	assert.Equal(t, throttle.Waiting, w.State)
	assert.Equal(t, reasons.Concurrency, w.Reason)
	assert.Equal(t, "1 of 1 starting", w.Held.Detail)
	assert.Equal(t, 1, w.Place)
	assert.Equal(t, 2, w.Of)
	assert.True(t, w.Present)
	assert.Positive(t, w.ExpectedSeconds)
	w = why("absent")
	assert.Equal(t, reasons.Preparing, w.Reason)
	assert.Equal(t, 2, w.Place)
	assert.Equal(t, 2, w.Of)
	assert.False(t, w.Present)
	assert.Equal(t, absent.uid, w.UID)
	w = why("holder")
	assert.Equal(t, throttle.Starting, w.State)
	assert.Equal(t, reasons.WithinLimits, w.Admission)
	assert.True(t, w.Slot)
	w = why("done")
	assert.Equal(t, throttle.Gone, w.State)
	assert.Equal(t, reasons.SandboxGone, w.Reason)
	_, err := n.d.Status().Why("default", "unknown")
	require.ErrorIs(t, err, admin.ErrUnknownPod)
	require.ErrorContains(t, err, "default/unknown")
}

func TestStatusCountsRefusals(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.Gate = waiting.GateNever }))
	n.strangePod("holder").runs().startsNow("app")
	p := n.strangePod("refused")
	for range 3 {
		require.Error(t, p.run())
	}
	s := n.d.Status()
	assert.Equal(t, admin.Refused{Sandbox: 3, SandboxesLeft: waiting.SandboxRefusals - 3}, s.Refused)
	assert.False(t, s.Gate.Usable)
	assert.Equal(t, "switched off by --gate never", s.Gate.WhyNot)
}

func TestStatusWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	o.InCluster = false
	d, err := New(o)
	require.NoError(t, err)
	s := d.Status()
	assert.Equal(t, "None", s.Config.Origin)
	assert.Nil(t, s.Config.Spec)
	assert.Nil(t, s.HeldBy)
	assert.Equal(t, "not connected to the runtime yet", s.Runtime.LastError)
	require.EqualError(t, d.Ready(), "not connected to the runtime yet")
	assert.WithinDuration(t, s.Since, s.Time, time.Minute)
}
