package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	oneInShadow = `spec: {mode: Shadow, throttleConfig: {maxConcurrent: {value: 1}}}`
	oneButOff   = `spec: {mode: "Off", throttleConfig: {maxConcurrent: {value: 1}}}`
)

// In the mode Shadow the queue moves as in Enforce, and no pod waits for it.
func TestShadowHoldsNothingAndShowsTheWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow)
	holder := n.occupy("holder")
	second := n.pod("second", func(pod *podwatch.Pod) {
		pod.Containers = containersNamed(podwatch.App, "app", "beside")
	}).runs()
	second.startsNow("app")
	second.startsNow("beside")
	third := n.pod("third").runs()
	third.startsNow("app")
	waiting, starting := n.names()
	assert.Equal(t, []string{"second", "third"}, waiting)
	assert.Equal(t, []string{"holder"}, starting)
	assert.Equal(t, reasons.Concurrency, n.view(second.uid).Reason)
	assert.InDelta(t, 2, counted(t, n, "pod_pacemaker_unpaced_total"), 0)

	second.getsReady()
	assert.Equal(t, throttle.Waiting, second.is(), "with Enforce it would still wait")
	holder.getsReady()
	second.becomes(throttle.Started, reasons.Ready)
	third.becomes(throttle.Starting, reasons.WithinLimits)
	n.eventually("the waits are counted", func() bool {
		return counted(t, n, "pod_pacemaker_shadow_wait_seconds") == 2
	})
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_wait_seconds"), 0, "only the first was admitted without a wait")
	third.getsReady()
	third.becomes(throttle.Started, reasons.Ready)
	assert.Zero(t, counted(t, n, "pod_pacemaker_refusals_total"))
	assert.Zero(t, counted(t, n, "pod_pacemaker_held_seconds_total"))
}

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

func TestShadowRefusesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow, with(func(o *Options) { o.Gate, o.RefuseAt = waiting.GateNever, waiting.RefuseSandbox }))
	n.occupy("holder")
	for i := range 8 {
		n.pod(fmt.Sprint("p", i)).runs().startsNow("app")
	}
	assert.Zero(t, counted(t, n, "pod_pacemaker_refusals_total"))
	waiting, _ := n.names()
	assert.Len(t, waiting, 8)
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

func TestOffAdmitsAllPodsAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	a := n.pod("a").runs().waitsAtGate("app")
	b := n.pod("b").runs().waitsAtGate("app")
	n.reconfigure(oneButOff)
	a.succeeds()
	b.succeeds()
	for i := range 5 {
		n.pod(fmt.Sprint("p", i)).runs().startsNow("app")
	}
	n.eventually("the pods count as unpaced", func() bool {
		return counted(t, n, "pod_pacemaker_unpaced_total") == 7
	})
	n.noHookIsLeft()
	assert.Zero(t, counted(t, n, "pod_pacemaker_refusals_total"))

	n.reconfigure(oneAtATime)
	n.pod("waits-again").runs().waitsAtGate("app")
}

// A start that did not wait leaves nothing behind when its pod is deleted.
func TestAShadowEndsWithItsPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow)
	n.occupy("holder")
	p := n.pod("p").runs()
	p.startsNow("app")
	p.isDeleted()
	n.eventually("no pod waits", func() bool {
		waiting, _ := n.names()
		return len(waiting) == 0
	})
	assert.Equal(t, throttle.Gone, p.is())
}
