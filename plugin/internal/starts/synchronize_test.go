package starts

import (
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// runsSince makes a container run since a moment. The node is not told.
func (p *testPod) runsSince(name string, since time.Time) *api.Container {
	ctr := p.isMade(name)
	ctr.State, ctr.StartedAt = api.ContainerState_CONTAINER_RUNNING, since.UnixNano()
	p.running[name] = ctr.GetId()
	return ctr
}

// lists makes the runtime list these containers, and the present sandboxes of these pods.
func (n *node) lists(pods []*testPod, ctrs ...*api.Container) {
	var sandboxes []*api.PodSandbox
	for _, p := range pods {
		sandboxes = append(sandboxes, p.sandbox)
	}
	n.Synchronize(sandboxes, ctrs)
}

// What the list shows is one change: a slot that is free by it is not given away before all starts of the list count.
func TestAStartThatIsListedGoesBeforeThePodsThatWait(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		gone := n.occupies("gone")
		n.pod("waits").runs().waits("app")
		listed := n.pod("listed")
		listed.sandbox.Id, listed.sandbox.Pid = "sandbox", 7
		n.lists([]*testPod{listed}, listed.runsSince("app", time.Now()))
		gone.is(throttle.Gone, reasons.SandboxGone)
		waiting, starting := n.names()
		assert.Equal(t, [][]string{{"waits"}, {"listed"}}, [][]string{waiting, starting})
	})
}

// A sidecar of the pod has just begun to run, and its app crashed and waits in the gate.
func TestAfterARestartOfTheDaemonAHookBesideAYoungSidecarKeepsWaiting(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		began := time.Now()
		time.Sleep(time.Minute)
		var all []*testPod
		var ctrs []*api.Container
		for _, name := range []string{"a", "b", "c"} {
			p := n.pod(name, containers(map[string]podwatch.Kind{"sidecar": podwatch.Sidecar, "app": podwatch.App}))
			p.sandbox.Id, p.sandbox.Pid = "sandbox-of-"+name, 7
			ctrs = append(ctrs, p.runsSince("sidecar", began), p.isMade("app"))
			p.latest["app"].State = api.ContainerState_CONTAINER_CREATED
			all = append(all, p)
		}
		n.lists(all, ctrs...)
		require.True(t, n.Freeze())
		for _, p := range all {
			n.EnterGate(time.Now(), Identity{UID: p.uid, Namespace: "default", Name: p.uid}, p.latest["app"].GetId(), began.Add(time.Second), time.Time{})
		}
		require.NoError(t, n.Thaw(t.Context()))
		waiting, starting := n.names()
		require.Len(t, starting, 1, "there is one slot")
		require.Len(t, waiting, 2)

		last := all[strings.Index("abc", waiting[1])] // its hook left by itself
		last.begins("app")
		last.is(throttle.Starting, reasons.Adopted)
	})
}

func TestASandboxThatWasReplacedWhileTheRuntimeWasAwayIsAFirstStart(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		moved := n.pod("moved").hasStarted("app")
		holder := n.occupies("holder")
		moved.sandbox = &api.PodSandbox{Id: "another", Uid: moved.uid, Namespace: "default", Name: moved.uid, Pid: 9}
		n.lists([]*testPod{holder, moved}, &api.Container{
			Id: holder.latest["app"].GetId(), Name: "app", PodSandboxId: holder.sandbox.GetId(), State: api.ContainerState_CONTAINER_RUNNING, Pid: 7,
		})
		assert.False(t, moved.asks("app").Decision.Granted)
	})
}

func TestAPodThatStartedLongAgoWhileTheRuntimeWasAwayWaitsNoMore(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, "spec: {startTimeout: 30s}", throttle.Settings{MaxConcurrent: 1, StartTimeout: 30 * time.Second})
		holder := n.occupies("holder")
		p := n.pod("p").runs()
		require.False(t, p.asks("app").Decision.Granted)
		time.Sleep(15 * time.Second) // kubelet tries again while the daemon is not connected
		ctr := p.runsSince("app", time.Now())
		time.Sleep(31 * time.Second)
		p.getsReady()
		p.is(throttle.Waiting, "")
		n.lists([]*testPod{holder, p}, ctr)
		n.passes(0)
		p.is(throttle.Started, reasons.Ready, "it is not stuck")
	})
}

func TestARestartWhileTheRuntimeWasAwayCounts(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("p").hasStarted("app")
		ready := p.latest["app"]
		ready.State, ready.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().Add(-time.Second).UnixNano()
		n.passes(time.Minute)
		n.lists([]*testPod{p}, ready)
		p.is(throttle.Started, reasons.Ready, "it has not been started again")

		again := p.runsSince("app", time.Now())
		time.Sleep(2 * time.Second)
		n.lists([]*testPod{p}, again)
		p.is(throttle.Starting, reasons.Adopted)
		assert.False(t, n.pod("behind").runs().asks("app").Decision.Granted, "there is one slot")
	})
}

// Another pod waits until the running one is gone, which has a new sandbox and runs on.
func TestASandboxThatWasReplacedFreesNoPlaceOfItsRunningPod(t *testing.T) {
	t.Parallel()
	onUnlimitedNode(t, func(t *testing.T, n *node) {
		moved, next := n.pod("moved").hasStarted("app"), n.pod("next").runs()
		n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 1}}}")
		next.waits("app")
		next.latest["app"].State = api.ContainerState_CONTAINER_CREATED
		moved.sandbox = &api.PodSandbox{Id: "another", Uid: moved.uid, Namespace: "default", Name: moved.uid, Pid: 9}
		n.lists([]*testPod{moved, next}, moved.runsSince("app", time.Now()), next.latest["app"])
		next.is(throttle.Waiting, reasons.PolicyRunning)
		assert.EqualValues(t, 1, n.usage().Running.Pods)

		moved.sandbox = &api.PodSandbox{Id: "third", Uid: moved.uid, Namespace: "default", Name: moved.uid, Pid: 9}
		n.lists([]*testPod{moved, next}, next.latest["app"])
		next.is(throttle.Waiting, reasons.PolicyRunning, "kubelet makes its containers anew")
	})
}

// As after a restart of the runtime that lost them.
func TestAPodWhoseSandboxIsLostKeepsItsPlaceIfKubeletMakesAnother(t *testing.T) {
	t.Parallel()
	for policy, keeps := range map[string]bool{"Always": true, "OnFailure": true, "Never": false} {
		onUnlimitedNode(t, func(t *testing.T, n *node) {
			lost := n.pod("lost", func(pod *podwatch.Pod) { pod.RestartPolicy = policy }).hasStarted("app")
			next := n.pod("next").runs()
			n.enforce(t, "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 1}}}")
			next.waits("app")
			next.latest["app"].State = api.ContainerState_CONTAINER_CREATED
			n.lists([]*testPod{next}, next.latest["app"])
			lost.is(throttle.Started, reasons.Ready)
			if keeps {
				next.is(throttle.Waiting, reasons.PolicyRunning, policy)
				assert.EqualValues(t, 1, n.usage().Running.Pods)
			} else {
				next.is(throttle.Starting, reasons.WithinLimits, policy)
			}
		})
	}
}

// The runtime tells by the wall clock since when a container runs.
func TestAfterTheClockWasSetBackAPodThatRunsOnIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		p := n.pod("p").hasStarted("app")
		ctr := p.latest["app"]
		ctr.State, ctr.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().Add(time.Hour).UnixNano()
		n.passes(time.Minute)
		n.lists([]*testPod{p}, ctr)
		p.is(throttle.Started, reasons.Ready)
	})
}

// An app beside a young sidecar crashed, and kubelet holds it back.
func TestAfterARestartOfTheDaemonAPodThatCrashLoopsIsNotStarting(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		p := n.pod("p", containers(map[string]podwatch.Kind{"sidecar": podwatch.Sidecar, "app": podwatch.App}))
		p.sandbox.Id, p.sandbox.Pid = "sandbox", 7
		sidecar := p.runsSince("sidecar", time.Now())
		time.Sleep(time.Minute)
		p.reports(crashLoops)
		n.lists([]*testPod{p}, sidecar)
		p.is("", "")
		holder := n.occupies("holder")
		p.waits("app")
		holder.getsReady()
		p.is(throttle.Starting, reasons.WithinLimits)
		p.begins("app")

		app := p.latest["app"] // kubelet has not reported yet that it runs
		app.State, app.StartedAt = api.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
		another := newNode(t, func(o *Options) { o.Pods = n.watch })
		another.lists([]*testPod{p}, sidecar, app)
		_, starting := another.names()
		assert.Equal(t, []string{"p"}, starting)
	})
}
