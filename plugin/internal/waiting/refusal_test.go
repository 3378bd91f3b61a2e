package waiting

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// fillGate makes as many pods wait in the gate as it has room for. It returns them, and the first pod that was refused.
func (n *node) fillGate() (waiting []container, hooks []*asker, refused *pod) {
	n.t.Helper()
	for i := 0; ; i++ {
		p := n.pod(fmt.Sprintf("waits-%d", i))
		if err := p.run(); err != nil {
			require.ErrorIs(n.t, err, errWaiting)
			require.Equal(n.t, map[string]float64{string(reasons.GateFull): 1}, n.counted("refusals_total"))
			return waiting, hooks, p
		}
		c := p.makes("app")
		waiting, hooks = append(waiting, c), append(hooks, c.hookAsks())
	}
}

func TestARefusedSandboxKeepsItsPlace(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		waiting, hooks, refused := n.fillGate()
		require.NotEmpty(t, waiting)
		joined := refused.view()
		require.Equal(t, throttle.Waiting, joined.State, "the removal of the refused sandbox is not the end of the pod")
		require.False(t, joined.Present)

		later := n.pod("later")
		require.Error(t, later.run())
		require.Error(t, refused.run(), "the gate has no room yet")
		assert.Equal(t, joined.Arrived, refused.view().Arrived, "the pod has the place of its first attempt")
		assert.Less(t, refused.view().Ahead, later.view().Ahead)

		holder.getsReady()
		for i, c := range waiting {
			require.True(t, hooks[i].result().Go)
			c.runs()
			c.pod.getsReady()
		}
		refused.runs().starts("app")
		refused.getsReady()
		later.runs().starts("app")
		sandboxes, containers := n.Refusals.Counts()
		assert.Equal(t, []uint64{3, 0}, []uint64{sandboxes, containers})
	})
}

// kubelet writes the text of a refusal to the API server, once more for each new text.
func TestThePlaceAndTheReasonDoNotChangeTheTextOfARefusal(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		first, second := n.pod("first").runs(), n.pod("second").runs()
		_, err := first.create("app")
		require.EqualError(t, err, "pod-pacemaker: waiting to start; kubelet tries again by itself, and kubectl pacemaker why, or pod-pacemaker why on the node, says what holds the pod")
		_, behind := second.create("app")
		require.Equal(t, err, behind)
		first.isDeleted()
		n.configure("spec: {}", throttle.Settings{MaxConcurrent: 3, FillEvery: time.Hour})
		n.occupy("takes the token")
		_, held := second.create("app")
		require.Equal(t, err, held)
		assert.Equal(t, map[string]float64{string(reasons.Concurrency): 2, string(reasons.Rate): 1}, n.counted("refusals_total"))
	}, gateUse(GateNever), refuseAt(RefuseContainer))
}

// kubelet counts the refusal of a container that ran before as a crash, and tries again minutes later.
func TestMoreContainersThatRanBeforeWaitInTheGate(t *testing.T) {
	t.Parallel()
	for ran, most := range map[bool]int{false: 2, true: 12} { // starts of 48 s in 100 s, or of 4 s in 50 s
		t.Run(fmt.Sprint(ran), func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				n.longest(48 * time.Second)
				n.observed(4 * time.Second)
				n.occupy("holder")
				inGate := 0
				for i := range 40 {
					p := n.pod(fmt.Sprint("pod-", i), func(pod *podwatch.Pod) {
						if ran {
							pod.Containers["app"] = podwatch.Container{Kind: podwatch.App, ID: "before-the-reboot"}
						}
					}).runs()
					if c, err := p.create("app"); err == nil {
						require.NotNil(t, c.hook)
						inGate++
					}
				}
				assert.Equal(t, most, inGate)
			}, refuseAt(RefuseContainer), gateTimeout(100*time.Second))
		})
	}
}

func TestRefusalsMoveToTheContainerWhenTheyCostTooMuch(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		n.fillGate()
		refused := 1
		for ; n.pod(fmt.Sprintf("crowd-%d", refused)).run() != nil; refused++ {
			require.Less(t, refused, 100)
		}
		assert.Equal(t, 12, refused, "0.2 CPU-seconds each: 2 % of two cores for a minute")
		p := n.pod("at the container")
		p.runs()
		const containers = 2400 / 50 // all together cost as much as the 12 sandboxes
		for range containers {
			_, err := p.create("app")
			require.ErrorIs(t, err, errWaiting)
		}
		atSandbox, atContainer := n.Refusals.Counts()
		assert.Equal(t, []uint64{12, containers}, []uint64{atSandbox, atContainer})
		n.passes(refusalSaved)
		require.NoError(t, p.run(), "the refusals at the container are charged, too")
		n.passes(refusalSaved / 12)
		assert.Error(t, p.run(), "later sandboxes are refused again")
	})
}

func TestNothingIsRefusedAtTheSandboxWhereTheRuntimeKeepsIt(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		fields := n.Connected("containerd", "2.2.5", 0)
		assert.Contains(t, fields["no_refusal_at_sandbox"], "containerd 2.2.5 keeps what is left")
		assert.Contains(t, fields["no_gate"], "holds up statistics")
		n.occupy("holder")
		for i := range 4 {
			_, err := n.pod(fmt.Sprintf("crowd-%d", i)).runs().create("app")
			require.ErrorIs(t, err, errWaiting, "the gate is not used on this runtime either")
		}
		sandboxes, containers := n.Refusals.Counts()
		assert.Equal(t, []uint64{0, 4}, []uint64{sandboxes, containers})
		assert.Empty(t, n.Connected("containerd", "2.4.2", 0))
	}, refuseAt(RefuseSandbox))
}

// A controller may give up a pod that shows the error of a container, and a pod that is not restarted may be lost.
func TestAPodThatMayNotFailGetsItsSandboxTogetherWithASlot(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]func(*podwatch.Pod){
		"never restarted": restarted("Never"),
		"of a Job":        func(pod *podwatch.Pod) { pod.RestartPolicy, pod.Like.Owner = "OnFailure", "Job/once" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				holder := n.occupy("holder")
				p := n.pod("once", shape)
				for range SandboxRefusals / 2 { // far more than auto allows other pods
					require.ErrorIs(t, p.run(), errWaiting)
				}
				holder.getsReady()
				p.runs()
				assert.Equal(t, throttle.Starting, p.view().State)
				later := n.pod("later", shape)
				require.ErrorIs(t, later.run(), errWaiting, "the slot is taken, although the container is not made yet")
				p.starts("app")
				_, containers := n.Refusals.Counts()
				assert.Zero(t, containers)
				n.o.Starts.SandboxStopped(p.sandbox)
				later.runs()
			})
		})
	}
}

// Each refused sandbox has used up an address for a while.
func TestRefusalsOfSandboxesAreBoundedByCount(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		_, _, always := n.fillGate()
		for n.Refusals.SandboxesLeft(time.Now()) >= SandboxRefusals/2 {
			require.ErrorIs(t, always.run(), errWaiting)
		}
		always.runs()
		never := n.pod("never", restarted("Never"))
		for range SandboxRefusals/2 - 1 {
			require.ErrorIs(t, never.run(), errWaiting, "half of the refusals are kept for such pods")
		}
		assert.Zero(t, n.Refusals.SandboxesLeft(time.Now()))
		_, err := never.runs().create("app")
		require.ErrorIs(t, err, errWaiting, "at the container")

		n.passes(time.Minute)
		assert.Equal(t, SandboxRefusals, n.Refusals.SandboxesLeft(time.Now()))
	}, refuseAt(RefuseSandbox))
}
