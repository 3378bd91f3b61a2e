package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAnAdministratorSwitchesTheNodeOffAndOn(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATimeLate)
	n.occupy("holder")
	waits := n.pod("waits").runs().waitsAtGate("app")
	said := n.logged()

	before := time.Now()
	until := n.d.applier.SwitchOff(time.Hour)
	require.NoError(t, waits.result(), "it starts at once")
	assert.WithinRange(t, until, before.Add(time.Hour), time.Now().Add(time.Hour))
	n.pod("next").runs().startsNow("app")
	assert.Contains(t, said(), "switched off on this node until")
	assert.Equal(t, v1alpha1.ModeDisabled, n.d.Status().Config.Mode)
	assert.Equal(t, until, n.d.Status().Config.OffUntil)
	assert.Equal(t, "test", n.d.Status().Config.Name)
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_switched_off"), 0)

	n.d.applier.configure(n.config)
	assert.Equal(t, v1alpha1.ModeDisabled, n.d.Status().Config.Mode, "a change of the config does not switch it on")

	assert.Zero(t, n.d.applier.SwitchOff(0))
	assert.Equal(t, v1alpha1.ModeEnforce, n.d.Status().Config.Mode)
	assert.Zero(t, n.d.Status().Config.OffUntil)
	assert.Zero(t, counted(t, n, "pod_pacemaker_switched_off"))
	n.pod("held").runs().waitsAtGate("app")
}

func TestTheNodesReportSaysThatItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	c.d.applier.SwitchOff(time.Hour)
	assert.Contains(t, c.d.nodeStatus().Conditions[0].Message, "switched off on this node until ")
	assert.Equal(t, v1alpha1.ModeDisabled, c.d.nodeStatus().Mode)
	c.d.applier.SwitchOff(0)
	assert.NotContains(t, c.d.nodeStatus().Conditions[0].Message, "switched off")
}

func TestTheNodeSwitchesOnByItself(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATimeLate)
	n.d.applier.SwitchOff(time.Hour)
	n.d.applier.SwitchOff(20 * time.Millisecond)
	n.eventually("the limits are in force", func() bool { return n.d.Status().Config.Mode == v1alpha1.ModeEnforce })
	assert.Zero(t, n.d.Status().Config.OffUntil)
	n.d.applier.SwitchOff(time.Hour)
	n.d.applier.switchOn() // the timer of an earlier call
	assert.Equal(t, v1alpha1.ModeDisabled, n.d.Status().Config.Mode)
	n.d.applier.SwitchOff(0)
}

func TestAnAdministratorAdmitsAPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATimeLate)
	n.occupy("holder")
	other := n.pod("other").runs().waitsAtGate("app")
	p := n.pod("admitted").runs()
	a := p.waitsAtGate("app")
	require.True(t, n.d.applier.Admit(p.uid))
	require.NoError(t, a.result())
	assert.Equal(t, reasons.ByHand, n.view(p.uid).Admission)
	assert.True(t, n.view(p.uid).Slot)
	assert.False(t, other.over())
	assert.False(t, n.d.applier.Admit(p.uid), "it starts already")
	assert.False(t, n.d.applier.Admit("unknown"))

	n.d.applier.SwitchOff(time.Hour)
	assert.False(t, n.d.applier.Admit(p.uid))
	n.d.applier.SwitchOff(0)
}
