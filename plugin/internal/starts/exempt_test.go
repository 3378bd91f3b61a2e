package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const daemonSetsExempt = "spec: {exemptions: {daemonSets: {namespaces: [default]}}}"

// isDaemon makes a pod one of a DaemonSet.
func isDaemon(pod *podwatch.Pod) { pod.DaemonSet = true }

// Which pods are exempt, package pods decides.
func TestAnExemptPodStartsWithoutASlotWhereNoneIsFree(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, daemonSetsExempt, oneSlot)
		n.occupies("holder")
		n.pod("waits").runs().waits("app")
		n.crowd()
		byLabel := n.stranger("by-label")
		byLabel.sandbox.Labels = map[string]string{"pod-template-generation": "1"}
		for _, p := range []*testPod{byLabel, n.pod("daemon", isDaemon)} {
			p.runs().starts("app")
			p.is(throttle.Starting, reasons.Exempt)
			assert.False(t, p.view().Slot, p.uid)
		}
		waiting, starting := n.names()
		assert.Contains(t, waiting, "waits")
		assert.Equal(t, []string{"holder"}, starting)

		daemon := n.pod("ready", isDaemon).runs()
		daemon.starts("app")
		daemon.getsReady()
		daemon.is(throttle.Started, reasons.Ready, "it ends like any other start")
	})
}

func TestANewConfigurationExemptsPodsThatWait(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupies("holder")
		known, unknown := n.pod("known", isDaemon).runs(), n.stranger("unknown").runs()
		known.waits("app")
		unknown.waits("app")
		n.configured(t, daemonSetsExempt, oneSlot)
		known.is(throttle.Starting, reasons.Exempt)
		unknown.is(throttle.Waiting, reasons.Concurrency)
	})
}

func TestAPodThatStaysUnknownIsJudgedAgainWhenItIsKnown(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, daemonSetsExempt, oneSlot)
		holder := n.occupies("holder")
		exempt := n.stranger("exempt").runs()
		assert.False(t, exempt.asks("app").Decision.Granted, "an unknown pod waits like any other")
		exempt.becomesKnown(isDaemon)
		exempt.is(throttle.Starting, reasons.Exempt)
		exempt.starts("app")

		plain, urgent := n.stranger("plain").runs(), n.stranger("urgent").runs()
		waiting, _ := n.names()
		assert.Equal(t, []string{"plain", "urgent"}, waiting)
		plain.becomesKnown()
		urgent.becomesKnown(func(pod *podwatch.Pod) { pod.Priority = 1000 })
		waiting, _ = n.names()
		assert.Equal(t, []string{"urgent", "plain"}, waiting, "priority goes first")
		plain.waits("app")
		urgent.waits("app")
		holder.getsReady()
		urgent.is(throttle.Starting, reasons.WithinLimits)
		plain.is(throttle.Waiting, reasons.Concurrency)
	})
}

func TestAPodWithoutUIDIsKnownByItsName(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		for i, name := range []string{"first", "second"} {
			n.Sandbox(time.Now(), NewSandbox{Sandbox: &api.PodSandbox{Id: name, Namespace: "default", Name: name}, Refusable: true})
			v, _ := n.View(time.Now(), "default/"+name)
			assert.Equal(t, throttle.Waiting, v.State)
			assert.Equal(t, i, v.Ahead)
		}
	}, standalone)
}

// A handler waits for the report of a pod only if the pod may have to wait.
func TestOnlyAPodThatMayHaveToWaitIsHeldToBecomeKnown(t *testing.T) {
	t.Parallel()
	plain, daemon := &api.PodSandbox{Namespace: "default"}, &api.PodSandbox{Namespace: "default", Labels: map[string]string{"pod-template-generation": "1"}}
	for config, want := range map[string]struct{ plain, daemon bool }{
		"spec: {}":               {true, true},
		daemonSetsExempt:         {true, false},
		"spec: {mode: Shadow}":   {false, false},
		`spec: {mode: Disabled}`: {false, false},
	} {
		s := aStarts()
		s.configured(t, config, oneSlot)
		assert.Equal(t, want.plain, s.MayHold(plain), config)
		assert.Equal(t, want.daemon, s.MayHold(daemon), config)
	}
}

// It may have become exempt, or known, while no daemon ran.
func TestAHookOfAnExemptPodDoesNotWait(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, daemonSetsExempt, oneSlot)
		n.occupies("holder")
		n.pod("daemon", isDaemon)
		n.EnterGate(time.Now(), Identity{UID: "daemon", Namespace: "default", Name: "daemon"}, "container", time.Now(), time.Time{})
		v, _ := n.View(time.Now(), "daemon")
		assert.Equal(t, throttle.Starting, v.State)
		assert.Equal(t, reasons.Exempt, v.Reason)
	})
}
