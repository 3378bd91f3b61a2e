package starts

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAllContainersOfAnAdmittedStartPass(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("many", containers(map[string]podwatch.Kind{
			"init": podwatch.Init, "sidecar": podwatch.Sidecar, "app": podwatch.App, "other": podwatch.App,
		})).runs()
		p.starts("init")
		n.pod("behind").runs().waits("app")
		p.exits("init")
		n.SetShutdown(true) // from now on, no other pod starts
		p.starts("sidecar", "app", "other")
		waiting, starting := n.names()
		assert.Equal(t, []string{"behind"}, waiting)
		assert.Equal(t, []string{"many"}, starting, "all containers belong to one start")
	})
}

// The pod watch may report the container later than the runtime makes it.
func TestAnEphemeralContainerNeverWaitsAndIsNoStart(t *testing.T) {
	t.Parallel()
	for _, reported := range []bool{false, true} {
		onNode(t, func(t *testing.T, n *node) {
			p := n.pod("debugged").hasStarted("app")
			n.occupies("holder")
			if reported {
				p.told(containers(map[string]podwatch.Kind{"app": podwatch.App, "debug": podwatch.Ephemeral}))
			}
			p.starts("debug")
			p.is(throttle.Started, reasons.Ready, "an ephemeral container is no start of the pod")

			p.exits("app")
			assert.True(t, p.asks("app").MayWait, "the debug container is no app that runs")
			n.ContainerRemoved(p.sandbox, p.latest["app"])
			p.exits("debug")
			p.starts("debug")
			p.is(throttle.Waiting, reasons.Concurrency, "an ephemeral container does not let the pod start")
		})
	}
}

// Without kubelet's report, a pod between its init container and its app seems to have started.
func TestTheAppIsPacedAfterAnInitContainerThatSeemedToBeAllOfThePod(t *testing.T) {
	t.Parallel()
	for end, lasts := range map[reasons.Reason]time.Duration{reasons.Completed: 0, reasons.Inferred: time.Minute} {
		onNode(t, func(t *testing.T, n *node) {
			p := n.stranger("with-init").runs()
			p.starts("init")
			n.passes(lasts)
			p.exits("init")
			n.passes(time.Minute)
			p.is(throttle.Started, end)
			n.stranger("holder").runs().mayStart("app")
			d := p.asks("app").Decision
			require.False(t, d.Granted)
			assert.Equal(t, reasons.Concurrency, d.Reason)
			p.is(throttle.Waiting, reasons.Concurrency)
		}, standalone)
	}
}

// While the API server is away, the pod watch still knows which containers are init containers.
func TestNoInitContainerEndsAStartWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel()
	for name, lasts := range map[string]time.Duration{"it ends at once": 0, "it is quiet for a minute": time.Minute} {
		onNode(t, func(_ *testing.T, n *node) {
			p := n.pod("with-init", containers(map[string]podwatch.Kind{"init": podwatch.Init, "app": podwatch.App})).runs()
			n.watch.away = true
			p.starts("init")
			n.passes(lasts)
			p.exits("init")
			n.passes(time.Minute)
			p.is(throttle.Starting, reasons.WithinLimits, name)
			p.starts("app")
			n.passes(time.Minute)
			p.is(throttle.Started, reasons.Inferred, name)
		})
	}
}

func TestAPodThatEndsWhileTheAPIServerIsAwayGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("job", containers(map[string]podwatch.Kind{"proxy": podwatch.Sidecar, "app": podwatch.App}), func(pod *podwatch.Pod) {
			pod.RestartPolicy = "Never"
		}).runs()
		n.watch.away = true
		p.starts("proxy", "app")
		p.exits("app")
		n.passes(time.Minute)
		p.is(throttle.Started, reasons.Completed)
	})
}

func TestAnAppBesideARunningContainerBelongsToTheStartThatSeemedToBeOver(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.stranger("pair").runs()
		p.starts("sidecar")
		n.passes(time.Minute)
		p.is(throttle.Started, reasons.Inferred)
		n.stranger("holder").runs().mayStart("app")
		p.starts("app")
		p.is(throttle.Started, reasons.Inferred)
	}, standalone)
}

// The runtime reports the stop of a process that ends at once before its start.
func TestAContainerThatStopsBeforeItsStartIsReported(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("brief").runs()
		p.mayStart("app")
		p.exits("app")
		p.is(throttle.Started, reasons.Exited)
		p.begins("app")
		p.is(throttle.Started, reasons.Exited)
		n.locked(func(l *ledger) {
			assert.Empty(t, l.pods[p.uid].progress(time.Time{}, podwatch.Pod{}).IDs, "nothing runs")
			assert.True(t, l.pods[p.uid].exitedSince(time.Time{}))
		})
	})
}

// A hook may leave by itself, and a container may have none.
func TestAStartWithoutARequestIsCounted(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupies("holder")
		waits := n.pod("waits").runs()
		waits.waits("app")
		waits.begins("app")
		stranger := n.stranger("stranger")
		stranger.isMade("app")
		stranger.begins("app")
		for _, p := range []*testPod{waits, stranger} {
			p.is(throttle.Starting, reasons.Adopted)
		}
		_, starting := n.names()
		assert.ElementsMatch(t, []string{"holder", "waits", "stranger"}, starting, "starts under way may exceed the limit")
		n.passes(0)
		assert.Equal(t, map[string]float64{"NotAsked": 2}, n.counted("pod_pacemaker_unpaced_total"))
	})
}

// containerd reports the stop of a container that it could not make, but not that it exited.
func TestAContainerThatCouldNotBeMadeIsPacedWhenItIsTriedAgain(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("misspelt").runs()
		p.mayStart("app")
		n.ContainerStopped(p.sandbox, p.latest["app"])
		p.told(func(pod *podwatch.Pod) {
			pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: p.latest["app"].GetId()}}
		}, crashLoops)
		p.is(throttle.Started, reasons.CrashLoop)
		holder := n.occupies("holder")
		n.ContainerRemoved(p.sandbox, p.latest["app"])
		p.waits("app")
		holder.getsReady()
		p.is(throttle.Starting, reasons.WithinLimits)
	})
}

// withInit gives a pod an init container and an app.
func withInit(pod *podwatch.Pod) {
	containers(map[string]podwatch.Kind{"init": podwatch.Init, "init-2": podwatch.Init, "app": podwatch.App})(pod)
}

// Init containers of a whole herd may wait for longer than startTimeout for the same thing.
func TestTheAppOfAStuckStartIsAStartOfItsOwn(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("slow", withInit).runs()
		p.starts("init")
		p.told(func(pod *podwatch.Pod) { pod.AllRunning, pod.ContainersReady = false, false })
		arrived := p.view().Arrived
		n.passes(throttle.Settings{}.WithDefaults().StartTimeout + time.Second)
		p.is(throttle.Started, reasons.Stuck)
		holder := n.occupies("holder")
		p.exits("init")
		p.starts("init-2")
		p.is(throttle.Started, reasons.Stuck, "another init container continues it")
		p.exits("init-2")
		p.waits("app")
		assert.Equal(t, arrived, p.view().Arrived)
		assert.WithinDuration(t, time.Now(), p.view().Since, time.Second, "it has waited for no time")
		holder.getsReady()
		p.is(throttle.Starting, reasons.WithinLimits)
	})
}

// lends makes the start of a pod, which holds the slot, do nothing for so long that a slot is lent.
func (n *node) lends(idle string) {
	since := time.Now()
	time.Sleep(time.Minute)
	n.ledger.limiter.Lookup(idle).SetStalled(time.Now(), since)
	n.ledger.limiter.Advance(time.Now())
}

// Slots are lent while starts do nothing, as while images are pulled after an init container. The apps may come together.
func TestTheAppOfAStartWithALentSlotIsAStartOfItsOwn(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		first, second, third := n.pod("first", withInit).runs(), n.pod("second", withInit).runs(), n.pod("third").runs()
		first.starts("init")
		second.waits("init")
		third.waits("app")
		n.lends("first")
		second.is(throttle.Starting, reasons.SlotLent)
		second.begins("init")
		second.exits("init")
		second.starts("init-2")
		second.exits("init-2")
		arrived := second.view().Arrived
		second.waits("app")
		assert.Equal(t, arrived, second.view().Arrived)
		first.exits("init")
		first.starts("app")
		first.is(throttle.Starting, reasons.WithinLimits, "its slot was not lent")
		waiting, _ := n.names()
		assert.Equal(t, []string{"second", "third"}, waiting)
		first.getsReady()
		second.is(throttle.Starting, reasons.WithinLimits)
		second.begins("app")
		second.getsReady()
		third.is(throttle.Starting, reasons.WithinLimits)
	})
}

func TestTheAppOfAStartWithALentSlotContinuesOnceTheSlotIsFree(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		first, second := n.pod("first", withInit).runs(), n.pod("second", withInit).runs()
		first.starts("init")
		second.waits("init")
		n.lends("first")
		second.is(throttle.Starting, reasons.SlotLent)
		second.begins("init")
		first.exits("init")
		first.starts("app")
		first.getsReady()
		second.exits("init")
		second.starts("app")
		second.is(throttle.Starting, reasons.SlotLent)
	})
}

// comesFromTheRoom makes a pod that cannot use the gate leave the waiting room with a slot that was lent.
func (n *node) comesFromTheRoom(name string, changes ...func(*podwatch.Pod)) *testPod {
	p := n.pod(name, changes...)
	known := n.Known(name)
	process, _ := n.EnterRoom(time.Now(), Identity{UID: name, Namespace: "default", Name: name}, known, time.Now(), time.Time{}, false)
	defer process.Leave()
	n.lends("holder")
	p.is(throttle.Starting, reasons.SlotLent)
	return p
}

func TestAPodWithoutInitContainersKeepsTheSlotThatItWasLentInTheRoom(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		n.occupies("holder")
		n.comesFromTheRoom("never").runs().starts("app")
	})
}

// The first app of a start has run, so its second does not wait for a slot of its own.
func TestTheSecondAppOfAStartWithALentSlotContinuesIt(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupies("holder")
		p := n.comesFromTheRoom("two", containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App, "init": podwatch.Init})).runs()
		p.mayStart("init")
		p.exits("init")
		require.False(t, p.asks("app").Decision.Granted)
		n.lends("holder")
		for range 3 {
			if p.asks("app").Decision.Granted {
				break
			}
			n.lends("holder")
		}
		p.is(throttle.Starting, reasons.SlotLent)
		p.begins("app")
		p.exits("app")
		p.mayStart("other")
	})
}

func TestASidecarThatRestartsDoesNotAdmitTheAppThatWaits(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, "spec: {restarts: {pace: false}}", oneSlot)
		n.occupies("holder")
		p := n.pod("mesh", containers(map[string]podwatch.Kind{"proxy": podwatch.Sidecar, "app": podwatch.App})).runs()
		p.waits("proxy")
		n.lends("holder")
		p.begins("proxy")
		p.waits("app")
		p.exits("proxy")
		p.asks("proxy")
		p.is(throttle.Waiting, "")
	})
}

func TestAnInitContainerThatBeganWithoutTheDaemonIsAStartUnderWay(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		holder := n.occupies("holder")
		p := n.pod("init", withInit).runs()
		p.waits("init")
		time.Sleep(time.Second)
		init := p.latest["init"]
		init.State, init.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
		time.Sleep(time.Second)
		holds := holder.latest["app"]
		holds.State = api.ContainerState_CONTAINER_RUNNING
		n.Synchronize([]*api.PodSandbox{p.sandbox, holder.sandbox}, []*api.Container{init, holds})
		p.is(throttle.Starting, reasons.Adopted)
	})
}

// The runtime lists a pod whose sidecar runs while its app waits, as after a lost connection.
func TestAnAppThatWaitsBesideASidecarIsNotTakenForAdmitted(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupies("holder")
		p := n.pod("mesh", containers(map[string]podwatch.Kind{"proxy": podwatch.Sidecar, "app": podwatch.App})).runs()
		p.waits("proxy")
		n.lends("holder")
		p.begins("proxy")
		require.False(t, p.asks("app").Decision.Granted)
		n.ContainerRemoved(p.sandbox, p.latest["app"]) // it was refused
		proxy := p.latest["proxy"]
		proxy.State = api.ContainerState_CONTAINER_RUNNING
		n.Synchronize([]*api.PodSandbox{p.sandbox}, []*api.Container{proxy})
		p.is(throttle.Waiting, "")
	})
}

func TestKubeletRetriesLateTheContainersThatRanBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recorded, again bool
		want            throttle.Refusal
	}{
		"it never ran":              {want: throttle.RetriedSoon},
		"it ran before":             {recorded: true, want: throttle.RetriedLate},
		"it exited in this sandbox": {recorded: true, again: true, want: throttle.RetriedSoon},
	} {
		assert.Equal(t, c.want, HookTerms{Recorded: c.recorded}.refusal(c.again), name)
	}
}
