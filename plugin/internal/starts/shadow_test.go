package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// In the mode Shadow the queue moves as in Enforce, and no pod waits for it.
func TestShadowHoldsNothingAndShowsTheWaits(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder := n.occupies("holder")
		second := n.pod("second", containers(map[string]podwatch.Kind{"app": podwatch.App, "beside": podwatch.App})).runs()
		second.starts("app", "beside")
		third := n.pod("third").runs()
		third.starts("app")
		waiting, starting := n.names()
		assert.Equal(t, []string{"second", "third"}, waiting)
		assert.Equal(t, []string{"holder"}, starting)
		second.is(throttle.Waiting, reasons.Concurrency)
		assert.Equal(t, map[string]float64{"Shadow": 2}, n.counted("pod_pacemaker_unpaced_total"))

		n.passes(time.Minute)
		second.getsReady()
		second.is(throttle.Waiting, reasons.Concurrency, "with Enforce it would still wait")
		n.passes(time.Minute)
		holder.getsReady()
		n.passes(59 * time.Second)
		second.is(throttle.Starting, reasons.WithinLimits, "its start took a minute")
		n.passes(2 * time.Second)
		second.is(throttle.Started, reasons.Ready)
		third.is(throttle.Starting, reasons.WithinLimits)
		n.passes(0)
		assert.Equal(t, map[string]float64{"Concurrency": 2}, n.counted("pod_pacemaker_shadow_wait_seconds"))
		assert.Equal(t, map[string]float64{"WithinLimits": 1}, n.counted("pod_pacemaker_wait_seconds"), "only the first was admitted without a wait")
		third.getsReady()
		n.passes(4 * time.Minute)
		third.is(throttle.Started, reasons.Ready)
	})
}

// It is under way once its process runs.
func TestAShadowWithoutAProcessWaitsForNothingAfterwards(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder, p := n.occupies("holder"), n.pod("p").runs()
		p.mayStart("app")
		assert.True(t, p.view().Present)
		n.configured(t, "spec: {}", oneSlot)
		assert.False(t, p.view().Present)
		holder.getsReady()
		p.is(throttle.Waiting, "", "a slot is for a process that waits")
		p.begins("app")
		p.is(throttle.Starting, reasons.Adopted)
	})
}

// A handler has just seen the mode Shadow.
func TestAShadowDoesNotBeginInAnotherMode(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder, p := n.occupies("holder"), n.pod("p").runs()
		n.configured(t, "spec: {}", oneSlot)
		n.locked(func(l *ledger) {
			known, report := l.pods["p"], n.watch.pods["p"]
			a := ContainerStart{NewContainer: known.isAsked(time.Now(), p.sandbox.GetId(), p.isMade("app"), report), Ends: Ends{HoldsNone: observe.Shadow}}
			l.decide(time.Now(), known, &a, l.containerKind(time.Now(), known, a, report))
			assert.True(t, a.Decision.Granted)
			assert.Empty(t, l.effects.reports)
		})
		assert.False(t, p.view().Present, "nothing waits for it")
		p.begins("app")
		p.is(throttle.Starting, reasons.Adopted, "it counts, as any start that was not asked for")
		holder.is(throttle.Starting, "")
	})
}

// Where pods do not get ready, a change of the mode gives none of them a slot for longer than a start may take.
func TestAnOldShadowThatIsNotReadyIsStuckInEnforce(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		timeout := throttle.Settings{}.WithDefaults().StartTimeout
		n.configured(t, shadowMode, oneSlot)
		n.occupies("holder")
		p, q := n.pod("p").runs(), n.pod("q").runs()
		for _, one := range []*testPod{p, q} {
			one.starts("app")
			one.told(func(pod *podwatch.Pod) { pod.AllRunning, pod.ContainersReady = false, false })
		}
		n.passes(timeout + timeout/2)
		n.configured(t, "spec: {}", oneSlot)
		n.passes(time.Second)
		q.is(throttle.Started, reasons.Stuck)
	})
}

// The loop may look for starts that take too long at any moment of the change.
func TestAnOldShadowThatIsReadyIsNotStuckInEnforce(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		timeout := throttle.Settings{}.WithDefaults().StartTimeout
		n.configured(t, shadowMode, oneSlot)
		n.occupies("holder")
		p, q := n.pod("p").runs(), n.pod("q").runs()
		p.starts("app")
		q.starts("app")
		n.passes(timeout - time.Minute)
		p.getsReady()
		q.getsReady()
		n.passes(2 * time.Minute)
		q.is(throttle.Waiting, "", "p has its turn")
		n.watch.get = func(string) { n.ledger.limiter.Advance(time.Now()) }
		n.configured(t, "spec: {}", oneSlot)
		q.is(throttle.Started, reasons.Ready)
	})
}

func TestAShadowWaitsThoughTheRuntimeListsItsPod(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder, p := n.occupies("holder"), n.pod("p").runs()
		p.starts("app")
		var ctrs []*api.Container
		for _, one := range []*testPod{holder, p} {
			one.latest["app"].State = api.ContainerState_CONTAINER_RUNNING
			one.latest["app"].StartedAt = time.Now().UnixNano()
			ctrs = append(ctrs, one.latest["app"])
		}
		n.lists([]*testPod{holder, p}, ctrs...)
		p.is(throttle.Waiting, reasons.Concurrency, "with Enforce it would still wait")
		assert.Equal(t, map[string]float64{"Shadow": 1}, n.counted("pod_pacemaker_unpaced_total"))
	})
}

// Its turn comes when its pod has run already.
func TestAShadowWhosePodHasEndedDoesNotCountAsRunning(t *testing.T) {
	t.Parallel()
	for phase, took := range map[corev1.PodPhase]time.Duration{corev1.PodSucceeded: time.Second, corev1.PodFailed: 6 * time.Minute} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			n.configured(t, shadowMode, throttle.Settings{})
			n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 1}}}")
			first, second := n.pod("first", factsOf(nil, nil)).runs(), n.pod("second", factsOf(nil, nil)).runs()
			for _, p := range []*testPod{first, second} {
				p.starts("app")
			}
			second.is(throttle.Waiting, reasons.PolicyRunning)
			for _, p := range []*testPod{second, first} {
				n.passes(took)
				p.reports(inPhase(phase))
				n.SandboxStopped(p.sandbox)
			}
			n.passes(20 * time.Minute)
			assert.NotEqual(t, throttle.Waiting, second.view().State)
			assert.Zero(t, n.usage().Running.Pods)
			n.configured(t, "spec: {}", throttle.Settings{})
			n.pod("third", factsOf(nil, nil)).runs().starts("app")
		})
	}
}

// Nothing is reported of a pod without a probe when it has settled.
func TestAShadowWithoutAProbeIsLearnedWhenItHasSettled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(t *testing.T, n *node) {
		b := &burner{n: n, root: root}
		b.idles(1)
		n.configured(t, shadowMode, oneSlot)
		holder := n.occupies("holder")
		p := n.pod("web", func(pod *podwatch.Pod) { pod.Probed, pod.Like = false, podwatch.Like{Images: "web"} }).runs()
		p.starts("app")
		p.reports()
		b.burns(120)
		p.is(throttle.Waiting, reasons.Concurrency)
		holder.getsReady()
		b.burns(5)
		learned := n.o.Memory.Costs()["default/images=web"]
		assert.Equal(t, 1, learned.Count)
		assert.InDelta(t, 5, learned.CPU.Mean, 2)
	}, withProc(root))
}

// As in Enforce, the container that follows begins another start.
func TestAShadowThatAProbeKilledIsLearnedAsKilled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	onNode(t, func(t *testing.T, n *node) {
		b := &burner{n: n, root: root}
		b.idles(1)
		n.configured(t, shadowMode, oneSlot)
		n.occupies("holder")
		p := n.pod("web", func(pod *podwatch.Pod) { pod.Patience, pod.Like = 20*time.Second, podwatch.Like{Images: "web"} }).runs()
		p.starts("app")
		b.burns(20)
		p.exits("app")
		p.starts("app")
		b.burns(20)
		p.getsReady()
		b.idles(2)
		learned := n.o.Memory.Costs()["default/images=web"]
		assert.Zero(t, learned.Count)
		assert.InDelta(t, 20, learned.CPU.Mean, 2)
	}, withProc(root))
}

// Whatever becomes of the pod afterwards, its turn takes as long as its start took.
func TestAShadowOfAPodThatIsNoLongerReadyGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder, p := n.occupies("holder"), n.pod("p").runs()
		p.starts("app")
		n.passes(time.Minute)
		p.getsReady()
		p.told(func(pod *podwatch.Pod) { pod.ContainersReady = false })
		holder.getsReady()
		p.is(throttle.Starting, reasons.WithinLimits)
		n.passes(59 * time.Second)
		p.is(throttle.Starting, reasons.WithinLimits)
		n.passes(2 * time.Second)
		p.is(throttle.Started, reasons.Ready)
	})
}

func TestAShadowWhoseTicketIsOverIsFollowedNoMore(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		holder := n.occupies("holder")
		never, killed := n.pod("never").runs(), n.pod("killed").runs()
		never.starts("app")
		killed.starts("app")
		killed.exits("app")
		holder.getsReady()
		n.passes(20 * time.Minute)
		never.is(throttle.Started, reasons.Stuck)
		killed.is(throttle.Started, reasons.Exited)
		assert.Empty(t, n.followed())
		killed.starts("app")
		under := n.oneUnderWay(n.ledger.pods[killed.uid]).runs
		assert.True(t, under, "another start, which has its turn")
	})
}

// The container of a pod that is deleted meanwhile starts nothing that would have waited.
func TestADeletedPodDoesNotContinueAsAShadow(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		p := n.pod("p").hasStarted("app")
		p.told(func(pod *podwatch.Pod) { pod.Deleting = true })
		p.exits("app")
		assert.True(t, p.asks("app").Decision.Granted)
		assert.Empty(t, n.counted("pod_pacemaker_unpaced_total"))
		assert.Empty(t, n.followed())
	})
}

// It was over, though its ticket waited, or holds a slot for as long as the start took.
func TestAShadowThatWasReadyOnceIsOverInEnforce(t *testing.T) {
	t.Parallel()
	for is, hadItsTurn := range map[throttle.State]bool{throttle.Waiting: false, throttle.Starting: true} {
		onNode(t, func(t *testing.T, n *node) {
			n.configured(t, shadowMode, oneSlot)
			holder, p := n.occupies("holder"), n.pod("p").runs()
			p.starts("app")
			n.passes(time.Minute)
			p.getsReady()
			if hadItsTurn {
				holder.getsReady()
			}
			p.told(func(pod *podwatch.Pod) { pod.ContainersReady = false })
			p.is(is, "")
			n.configured(t, "spec: {}", oneSlot)
			p.is(throttle.Started, reasons.Ready)
		})
	}
}

// followed returns the starts under way that continued at once in the mode Shadow.
func (n *node) followed() (all []string) {
	for _, one := range n.underWay() {
		if one.shadow.ticket != nil {
			all = append(all, one.uid)
		}
	}
	return all
}
