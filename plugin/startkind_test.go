package plugin

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAllContainersOfAnAdmittedStartPass(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("many", containers(map[string]podwatch.Kind{
		"init": podwatch.Init, "sidecar": podwatch.Sidecar, "app": podwatch.App, "other": podwatch.App,
	})).runs()
	n.pod("behind").runs()
	init := p.startsNow("init", "true")
	_, err := init.Wait(n.ctx)
	require.NoError(t, err)
	for _, name := range []string{"sidecar", "app", "other"} {
		p.startsNow(name)
	}
	_, starting := n.names()
	assert.Equal(t, []string{"many"}, starting, "all containers belong to one start")
}

func TestTheInitContainerOfAPodWaitsForThePod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("initial", containers(map[string]podwatch.Kind{"init": podwatch.Init, "app": podwatch.App})).runs()
	a := p.waitsAtGate("init")
	holder.getsReady()
	a.succeeds()
	n.pod("behind").runs()
	p.startsNow("app")
}

func TestAnEphemeralContainerNeverWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("debugged")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	n.occupy("holder")
	n.pods.tell(p.uid, func(pod *podwatch.Pod) {
		pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App}, "debug": {Kind: podwatch.Ephemeral}}
	})
	p.startsNow("debug")
	assert.Equal(t, throttle.Started, p.is(), "an ephemeral container is no start of the pod")

	p.crash("app")
	a := p.waitsAtGate("app")
	p.startsNow("debug")
	assert.False(t, a.over(), "an ephemeral container does not let the pod start")
}

// crash ends a container's process, and waits until the daemon knows.
func (p *testPod) crash(name string) {
	p.n.t.Helper()
	var found bool
	for _, ctr := range p.started {
		if ctr.ID() == p.running[name] {
			found = true
			require.NoError(p.n.t, ctr.Stop(p.n.ctx, 0))
		}
	}
	require.True(p.n.t, found, "%s runs", name)
	p.n.eventually("the exit is known", func() bool { return p.n.exited(p.uid, name) })
}

func TestALoneContainerThatCrashedWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("crashed")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	holder := n.occupy("holder")
	p.crash("app")
	a := p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
	p.becomes(throttle.Starting, reasons.WithinLimits)
}

// A pod that crashes repeatedly is queued behind pods that start for the first time, and behind pods that crashed less
// often.
func TestARepeatedCrashGoesBehindFirstStarts(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	storm := n.pod("storm").runs()
	for range 2 {
		storm.startsNow("app", "sh", "-c", "exit 1")
		storm.becomes(throttle.Started, reasons.Exited)
	}
	once := n.pod("once").runs()
	once.startsNow("app", "sh", "-c", "exit 1")
	once.becomes(throttle.Started, reasons.Exited)

	holder := n.occupy("holder")
	again := storm.waitsAtGate("app")
	later := once.waitsAtGate("app")
	good := n.pod("good").runs().waitsAtGate("app")
	waiting, _ := n.names()
	assert.Equal(t, []string{"good", "once", "storm"}, waiting)
	assert.Equal(t, 2, n.view(storm.uid).Repeats)

	holder.getsReady()
	good.succeeds()
	assert.False(t, later.over() || again.over())
	good.pod.getsReady()
	later.succeeds()
	later.pod.getsReady()
	again.succeeds()
}

func TestUnpacedRestartsAreCounted(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {restarts: {pace: false}, throttleConfig: {maxConcurrent: {value: 1}}}")
	p := n.pod("crashes").runs()
	p.startsNow("app", "sh", "-c", "exit 1")
	p.becomes(throttle.Started, reasons.Exited)
	n.occupy("holder")
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.Exempt)
	assert.False(t, n.pod("first").runs().waitsAtGate("app").over(), "a first start waits")
}

func TestANewSandboxIsAFirstStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("crashed").runs()
	p.startsNow("app", "sh", "-c", "exit 1")
	p.becomes(throttle.Started, reasons.Exited)
	require.NoError(t, p.sandbox.Stop(n.ctx))
	p.runs().startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
	assert.Zero(t, n.view(p.uid).Repeats)
}

func TestACrashedContainerBesideASidecarWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("crashed", containers(map[string]podwatch.Kind{"sidecar": podwatch.Sidecar, "app": podwatch.App})).runs()
	p.startsNow("sidecar")
	p.startsNow("app")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	holder := n.occupy("holder")
	p.crash("app")
	a := p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
}

func TestARestartBesideARunningContainerNeverWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("pair", containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).runs()
	p.startsNow("app")
	p.startsNow("other")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	n.occupy("holder")
	p.crash("other")
	ctr := p.creates("other")
	assert.Equal(t, reasons.Exempt, n.view(p.uid).Reason, "the restart is counted")
	assert.False(t, n.view(p.uid).Slot, "no slot was free")
	p.stillStarting("only the earlier containers are ready")
	p.launches("other", ctr).succeeds()
	p.stillStarting("the report is older than the restart")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
}

func TestAContainerThatStopsBeforeItsStartIsReported(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("brief").runs()
	sandbox := &api.PodSandbox{Id: p.sandbox.ID(), Uid: p.uid, Namespace: "default", Name: "brief"}
	ctr := &api.Container{Id: "brief", Name: "app", PodSandboxId: p.sandbox.ID()}
	_, _, err := n.d.handler.CreateContainer(n.ctx, sandbox, ctr)
	require.NoError(t, err)
	ctr.State = api.ContainerState_CONTAINER_STOPPED
	_, err = n.d.handler.StopContainer(n.ctx, sandbox, ctr)
	require.NoError(t, err)
	ctr.State = api.ContainerState_CONTAINER_RUNNING
	require.NoError(t, n.d.handler.PostStartContainer(n.ctx, sandbox, ctr))
	n.d.starts.Ledger.Read(func(b *pods.Book) {
		assert.Empty(t, b.Progress(p.uid, time.Time{}, podwatch.Pod{}).IDs)
	})
	assert.True(t, n.exited(p.uid, "app"))
}

func TestANewContainerShowsThatTheEarlierOneHasEnded(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("crashed")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	n.occupy("holder")
	// The runtime has not reported the exit, but kubelet already starts the container again.
	a := p.waitsAtGate("app")
	assert.False(t, a.over())
	// A late report changes nothing.
	sandbox, late := message(p, &attempt{ctr: p.started[0]})
	late.State = api.ContainerState_CONTAINER_STOPPED
	_, err := n.d.handler.StopContainer(n.ctx, sandbox, late)
	require.NoError(t, err)
	assert.Equal(t, throttle.Waiting, p.is())
}
