package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// restarted sets a pod's restart policy.
func restarted(policy string) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.RestartPolicy = policy }
}

// fillGate makes as many pods wait at the gate as it has room for. It returns them, and the first pod that was refused.
func (n *node) fillGate() (waiting []*attempt, refused *testPod) {
	n.t.Helper()
	for i := 0; ; i++ {
		p := n.pod(fmt.Sprintf("waits-%d", i))
		if err := p.run(); err != nil {
			require.ErrorContains(n.t, err, string(reasons.GateFull))
			return waiting, p
		}
		waiting = append(waiting, p.waitsAtGate("app"))
	}
}

// startOneByOne lets the pod of each attempt start and get ready, one after the other.
func (n *node) startOneByOne(waiting []*attempt) {
	n.t.Helper()
	for _, a := range waiting {
		a.succeeds()
		a.pod.getsReady()
	}
}

func TestARefusedSandboxKeepsItsPlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	waiting, refused := n.fillGate()
	joined := n.view(refused.uid)
	require.Equal(t, throttle.Waiting, joined.State, "the events of the sandbox's removal come before the refusal")
	require.False(t, joined.Present)

	later := n.pod("later")
	require.Error(t, later.run())
	require.Error(t, refused.run(), "the gate has no room yet")
	assert.Equal(t, joined.Arrived, n.view(refused.uid).Arrived, "the pod has the place of its first attempt")
	assert.Less(t, n.view(refused.uid).Ahead, n.view(later.uid).Ahead)

	holder.getsReady()
	n.startOneByOne(waiting)
	refused.runs().startsNow("app")
	refused.getsReady()
	later.runs().startsNow("app")
	sandboxes, _ := n.refused()
	assert.Equal(t, uint64(3), sandboxes)
}

func TestARefusalExplainsTheWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Gate = waiting.GateNever }))
	n.occupy("holder")
	p := n.pod("refused").runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, "pod-pacemaker: waiting to start: Concurrency (1 of 1 starting), 0 ahead; kubelet tries again by itself")
	second := n.pod("second").runs()
	_, err = second.create("app")
	require.ErrorContains(t, err, "1 ahead")
}

func TestContainersThatKubeletWouldNotStartAgainNeverWaitAtTheGate(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	never := n.pod("never", restarted("Never")).runs()
	mixed := n.pod("mixed", func(pod *podwatch.Pod) {
		pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, RestartPolicy: "Never"}}
	}).runs()
	stranger := n.strangePod("stranger").runs()
	for _, p := range []*testPod{never, mixed, stranger} {
		_, err := p.create("app")
		require.ErrorContains(t, err, string(reasons.Concurrency), p.spec.Name)
		assert.Equal(t, throttle.Waiting, p.is(), "%s keeps its place", p.spec.Name)
	}
	assert.Zero(t, n.rt.Hooks())
	_, refused := n.refused()
	assert.Equal(t, uint64(3), refused)

	holder.getsReady()
	never.startsNow("app")
	never.becomes(throttle.Starting, reasons.WithinLimits)
	never.getsReady()
	mixed.startsNow("app")
	mixed.getsReady()
	stranger.startsNow("app")
}

func TestAContainerWhoseTurnIsNextIsHeldForAMoment(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, holdsLong)
	holder := n.occupy("holder")
	p := n.pod("job", restarted("Never")).runs()
	created := make(chan error, 1)
	n.kept.Go(func() {
		_, err := p.create("app")
		created <- err
	})
	p.isAtGate() // its container is held in the handler
	holder.getsReady()
	require.NoError(t, <-created)
	p.becomes(throttle.Starting, reasons.WithinLimits)
	_, refused := n.refused()
	assert.Zero(t, refused)
}

func TestRefusalsMoveToTheContainerWhenTheyCostTooMuch(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	for i := 0; ; i++ {
		sandboxes, containers := n.refused()
		require.Zero(t, containers)
		p := n.pod(fmt.Sprintf("crowd-%d", i))
		err := p.run()
		if err != nil {
			require.ErrorContains(t, err, string(reasons.GateFull))
			continue
		}
		if _, err = p.create("app"); err != nil {
			require.ErrorContains(t, err, string(reasons.GateFull))
			assert.EqualValues(t, 12, sandboxes, "0.2 CPU-seconds each: 2 % of two cores for a minute")
			return
		}
		require.Zero(t, sandboxes, "the first pods may wait in the gate")
	}
}
