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

// crashLoops makes kubelet hold back the containers, as it says: of one that runs by the runtime, that is an old report.
func crashLoops(pod *podwatch.Pod) {
	pod.CrashLooping, pod.AllRunning = true, false
	for name, c := range pod.Containers {
		c.CrashLooping = true
		pod.Containers[name] = c
	}
}

func TestTheExitOfAllAppContainersEndsTheStart(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("crashes", containers(map[string]podwatch.Kind{
			"init": podwatch.Init, "sidecar": podwatch.Sidecar, "app": podwatch.App, "other": podwatch.App,
		})).runs()
		p.starts("init")
		p.exits("init")
		p.starts("sidecar", "app")
		p.exits("app")
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits, "the other container has not started yet")
		p.starts("other")
		p.exits("other")
		p.is(throttle.Started, reasons.Exited)
	})
}

// Only a pod that is always restarted is sure to start again.
func TestTheExitOfAJobsContainerIsForThePodWatchToJudge(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("job", func(pod *podwatch.Pod) { pod.RestartPolicy = "OnFailure" }).runs()
		p.starts("app")
		p.exits("app")
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits, "the Job may be complete, or start again")
		first := p.view().Arrived
		p.starts("app")
		p.is(throttle.Starting, reasons.WithinLimits)
		assert.True(t, p.view().Arrived.After(first), "the restart is a start of its own")
	})
}

func TestACrashLoopBesideARunningContainerEndsTheStart(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("half", containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).runs()
		p.starts("app", "other")
		p.exits("other")
		n.passes(time.Minute)
		p.is(throttle.Starting, reasons.WithinLimits)
		p.reports(crashLoops)
		p.is(throttle.Started, reasons.CrashLoop)
	})
}

// A try ends without a process if a later NRI plugin rejects the container, or if the runtime cannot start it. The slot is
// free at once, and the next try is a start of its own.
func TestATryThatEndedHoldsNoSlot(t *testing.T) {
	t.Parallel()
	kinds := containers(map[string]podwatch.Kind{"init": podwatch.Init, "sidecar": podwatch.Sidecar, "app": podwatch.App})
	notStarted := func(p *testPod) {
		p.told(func(pod *podwatch.Pod) {
			pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: p.latest["app"].GetId(), StartFailed: true}}
		})
	}
	for name, c := range map[string]struct {
		before func(p *testPod) // begins the start; nil if nothing is before its app
		ends   func(p *testPod)
		holds  bool // the start goes on
	}{
		"rejected":              {nil, (*testPod).isRejected, false},
		"cannot be started":     {nil, notStarted, false},
		"tried again":           {nil, func(p *testPod) { p.asks("app") }, false},
		"gone after a relist":   {nil, func(p *testPod) { p.n.lists([]*testPod{p}) }, false},
		"after its init":        {func(p *testPod) { p.starts("init"); p.exits("init") }, (*testPod).isRejected, false},
		"beside a sidecar":      {func(p *testPod) { p.starts("sidecar") }, (*testPod).isRejected, true},
		"the end of its init":   {func(p *testPod) { p.starts("init") }, func(p *testPod) { p.exits("init") }, true},
		"a report before it is": {nil, func(p *testPod) { p.told() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				p := n.pod("broken", kinds).runs()
				if c.before != nil {
					c.before(p)
				}
				if name != "the end of its init" {
					p.mayStart("app")
				}
				p.is(throttle.Starting, reasons.WithinLimits)
				next := n.pod("next").runs()
				next.waits("app")
				c.ends(p)
				if c.holds {
					p.is(throttle.Starting, reasons.WithinLimits)
					return
				}
				next.is(throttle.Starting, reasons.WithinLimits)
				assert.False(t, p.asks("app").Decision.Granted, "it asks anew")
			})
		})
	}
}

// isRejected makes a later plugin reject the latest container "app": the runtime takes it back.
func (p *testPod) isRejected() {
	p.n.ContainerStopped(p.sandbox, p.latest["app"])
	p.n.ContainerRemoved(p.sandbox, p.latest["app"])
}

func TestAnEarlierCrashLoopDoesNotEndANewStart(t *testing.T) {
	t.Parallel()
	for _, crashed := range [][]string{{"app"}, {"app", "other"}} { // the other one is made again later
		onNode(t, func(_ *testing.T, n *node) {
			kinds := map[string]podwatch.Kind{}
			for _, name := range crashed {
				kinds[name] = podwatch.App
			}
			p := n.pod("crashed", containers(kinds)).runs()
			p.starts(crashed...)
			p.exits(crashed...)
			p.is(throttle.Started, reasons.Exited)
			p.reports(crashLoops)
			earlier := p.latest["app"]
			p.starts("app") // kubelet has not reported since
			n.ContainerRemoved(p.sandbox, earlier)
			n.passes(time.Minute)
			p.is(throttle.Starting, reasons.WithinLimits, "the crash loop belongs to the earlier start")
			p.starts(crashed[1:]...)
			p.getsReady()
			p.reports(func(pod *podwatch.Pod) { pod.CrashLooping = false })
			p.is(throttle.Started, reasons.Ready)
		})
	}
}

// The runtime reports the end of a container by its ID alone if it has forgotten the sandbox.
func TestTheExitOfAContainerWhoseSandboxIsForgotten(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.occupies("crashes")
		ctr := p.latest["app"]
		ctr.State = api.ContainerState_CONTAINER_STOPPED
		n.ContainerStopped(nil, ctr)
		p.is(throttle.Started, reasons.Exited)
	})
}
