package starts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// unprobed removes the probes of a pod.
func unprobed(pod *podwatch.Pod) { pod.Probed = false }

// inPhase sets the phase of a pod.
func inPhase(phase corev1.PodPhase) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.Phase = phase }
}

// A node that was rebooted has kubelet's reports from before.
func TestAReportOfAnEarlierContainerEndsNothing(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("rebooted", func(pod *podwatch.Pod) {
			pod.Phase, pod.ContainersReady, pod.AllRunning, pod.CrashLooping = corev1.PodRunning, true, true, true
			pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, CrashLooping: true, ID: "from-before"}}
		}).runs()
		p.starts("app")
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits)
		p.getsReady()
		p.is(throttle.Started, reasons.Ready)
	})
}

func TestAPodWithoutProbesEndsAfterTheSettleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, func(o *Options) { o.Timing.Stalls.Every = time.Hour })
		n.configured(t, "spec: {settleTime: 7s}", oneSlot)
		p := n.pod("unprobed", unprobed).runs()
		p.starts("app")
		due := time.Now().Add(7 * time.Second)
		<-n.woken // the pod was admitted
		p.reports()
		require.Len(t, n.woken, 1, "the loop looks when to judge again")
		assert.Equal(t, due, n.round(time.Now()))
		n.passes(time.Until(due) - 1)
		p.is(throttle.Starting, reasons.WithinLimits)
		n.passes(1)
		p.is(throttle.Started, reasons.Settled)
	})
}

func TestAPodWithoutProbesKeepsItsSlotUntilAllOfItRuns(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, "spec: {settleTime: 0s}", oneSlot)
		p := n.pod("two", unprobed, containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).runs()
		p.starts("app")
		p.reports(func(pod *podwatch.Pod) { pod.AllRunning = false })
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits, "one container is missing")
		p.starts("other")
		p.reports()
		p.is(throttle.Started, reasons.Settled)
	})
}

func TestAPodThatEndsGivesUpItsSlotOrItsPlace(t *testing.T) {
	t.Parallel()
	deleted := func(pod *podwatch.Pod) { pod.Deleting = true }
	for _, c := range []struct {
		ends          func(*podwatch.Pod)
		reason        reasons.Reason
		starts, waits throttle.State // that a pod that starts gets, and one that waits
	}{
		{inPhase(corev1.PodSucceeded), reasons.Completed, throttle.Started, throttle.Gone},
		{inPhase(corev1.PodFailed), reasons.Failed, throttle.Started, throttle.Gone},
		{deleted, reasons.Deleted, throttle.Gone, throttle.Gone},
	} {
		onNode(t, func(t *testing.T, n *node) {
			starts := n.occupies("starts")
			waits, next := n.pod("waits").runs(), n.pod("next").runs()
			ticket := waits.waits("app")
			next.waits("app")
			waits.told(c.ends)
			waits.is(c.waits, c.reason)
			require.True(t, closed(ticket.Decided()), "its hook is told to end")
			starts.told(c.ends)
			starts.is(c.starts, c.reason)
			next.is(throttle.Starting, reasons.WithinLimits)
		})
	}
}
