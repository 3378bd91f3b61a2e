package plugin

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestHooksThatOutliveTheDaemonKeepTheirOrderAndTheLimit(t *testing.T) {
	t.Parallel()
	n := newNode(t, twoAtATimeLate)
	holders := []*testPod{n.occupy("holder-0"), n.occupy("holder-1")}
	var waiting []*attempt
	for i := range 4 {
		waiting = append(waiting, n.pod(fmt.Sprintf("waits-%d", i)).runs().waitsAtGate("app"))
	}
	order, _ := n.names()

	n.stopDaemon()
	n.startDaemon()
	n.connected()
	for _, a := range waiting {
		a.pod.isAtGate()
		assert.False(t, a.over(), "%s: the earlier starts count", a.pod.spec.Name)
	}
	again, starting := n.names()
	assert.Equal(t, order, again)
	assert.ElementsMatch(t, []string{"holder-0", "holder-1"}, starting)
	for _, p := range holders {
		assert.Equal(t, reasons.Adopted, n.view(p.uid).Reason)
	}

	for i, a := range waiting {
		holders[0].getsReady()
		a.succeeds()
		holders = append(holders[1:], a.pod)
		for _, b := range waiting[i+1:] {
			assert.False(t, b.over(), "%s goes after %s", b.pod.spec.Name, a.pod.spec.Name)
		}
	}
	n.noHookIsLeft()
}

func TestTheGateIsNotUsedUntilTheRuntimeHasListedItsPods(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATimeLate)
	holder := n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	n.stopDaemon()

	socket := n.options.NRISocket
	n.options.NRISocket = socket + ".later"
	n.startDaemon()
	n.eventually("the daemon notices that the runtime is gone", func() bool {
		err := n.d.Ready()
		return err != nil && !strings.Contains(err.Error(), "not connected to the runtime yet")
	})
	_, err := os.Lstat(n.options.SocketPath())
	require.ErrorIs(t, err, os.ErrNotExist, "the daemon does not know the starts, and would let the hook go")
	require.NoError(t, os.Symlink(socket, n.options.NRISocket))
	n.connected()
	a.pod.isAtGate()
	holder.getsReady()
	a.succeeds()
}

func TestADeadSandboxThatIsListedLastIsNotTheCurrentOne(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("moved")
	present, ctr := message(p, &attempt{ctr: p.started[0]})
	ctr.Name, ctr.State = "app", api.ContainerState_CONTAINER_RUNNING
	dead := &api.PodSandbox{Id: "dead", Uid: p.uid, Namespace: present.GetNamespace(), Name: present.GetName()}
	handlerOf(n.d).Synchronize([]*api.PodSandbox{present, dead}, []*api.Container{ctr})
	require.NoError(t, handlerOf(n.d).RemovePodSandbox(n.ctx, dead))
	assert.Equal(t, throttle.Starting, p.is())
	require.NoError(t, handlerOf(n.d).RemovePodSandbox(n.ctx, present))
	assert.Equal(t, throttle.Gone, p.is())
}

// The shim of a sandbox that this runtime made supports waiting hooks, whether or not the daemon saw it being made.
func TestAContainerOfAnOlderSandboxWaitsInTheGateIfTheRuntimeMadeThat(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("older")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	n.stopDaemon()
	n.startDaemon()
	n.connected()
	n.occupy("holder")
	sandbox, _ := message(p, &attempt{ctr: p.started[0]})
	sandbox.Pid = uint32(os.Getpid())
	makes := func(began time.Time, id string) (*api.ContainerAdjustment, error) {
		require.NoError(t, os.Chtimes(n.options.NRISocket, time.Time{}, began), "when the runtime began")
		adjustment, _, err := handlerOf(n.d).CreateContainer(n.ctx, sandbox, &api.Container{Id: id, Name: "app", PodSandboxId: sandbox.GetId()})
		return adjustment, err
	}
	_, err := makes(time.Now(), "refused")
	require.ErrorContains(t, err, "kubelet tries again")
	adjustment, err := makes(time.Unix(1, 0), "waits")
	require.NoError(t, err)
	assert.NotEmpty(t, adjustment.GetHooks().GetCreateRuntime())
}

func TestAnEarlierSidecarDoesNotStartItsWaitingPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("crashed", containers(sidecarAndApp)).runs()
	p.startsNow("sidecar")
	p.startsNow("app")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	holder := n.occupy("holder")
	p.crash("app")
	a := p.waitsAtGate("app")

	_, err := n.rt.DropPlugins()
	require.NoError(t, err)
	n.connected()
	assert.Equal(t, throttle.Waiting, p.is())
	assert.False(t, a.over())
	holder.getsReady()
	a.succeeds()
}

func TestAContainerThatEndedWhileThePluginWasAwayIsPacedWhenItStartsAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("crashes")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	holder := n.occupy("holder")

	var sandboxes []*api.PodSandbox
	var ctrs []*api.Container
	for _, of := range []*testPod{p, holder} {
		sandbox, ctr := message(of, &attempt{ctr: of.started[0]})
		ctr.Name, ctr.State = "app", api.ContainerState_CONTAINER_RUNNING
		sandboxes, ctrs = append(sandboxes, sandbox), append(ctrs, ctr)
	}
	handlerOf(n.d).Synchronize(sandboxes, ctrs[1:])
	a := p.waitsAtGate("app")
	assert.False(t, a.over())
	holder.getsReady()
	a.succeeds()
}

func TestPodsThatStartedWhileThePluginWasAwayAreCounted(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.stopDaemon()
	slipped := n.pod("slipped").runs()
	slipped.startsNow("app")
	n.startDaemon()
	n.connected()
	slipped.becomes(throttle.Starting, reasons.Adopted)
	n.eventually("the start counts as unpaced", func() bool { return counted(t, n, "pod_pacemaker_unpaced_total") == 1 })
	a := n.pod("waits").runs().waitsAtGate("app")
	slipped.getsReady()
	a.succeeds()
}

func TestTheDaemonWaitsForTheRuntime(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, oneAtATime)
	n.startDaemon()
	n.eventually("the daemon says what is missing", func() bool {
		err := n.d.Ready()
		return err != nil && assert.ObjectsAreEqual("NRI socket: dial unix "+n.options.NRISocket+
			": connect: no such file or directory (does containerd run, with NRI enabled?)", err.Error())
	})
	assert.Zero(t, counted(t, n, "pod_pacemaker_connected"))
	require.NoError(t, n.rt.Start())
	n.connected()
	n.eventually("the daemon is ready", func() bool { return n.d.Ready() == nil })
	n.eventually("the connection is counted", func() bool { return counted(t, n, "pod_pacemaker_connected") == 1 })
	n.occupy("paced")
}

func TestAHandlerThatPanicsLetsThePodStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.strangePod("unlucky")
	n.pods.panicsOf(p.uid)
	p.runs()
	ctr := p.creates("app")
	assert.InDelta(t, 2, counted(t, n, "pod_pacemaker_panics_total"), 0)
	assert.InDelta(t, 2, counted(t, n, "pod_pacemaker_unpaced_total"), 0)
	require.NoError(t, ctr.Start(n.ctx))
}

func TestSynchronizeTakesOverHundredsOfPods(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	started, startedContainers := listing(500, time.Now().Add(-time.Hour))
	handlerOf(n.d).Synchronize(started, startedContainers)
	_, starting := n.names()
	assert.Empty(t, starting, "the pods started long ago")

	fresh, freshContainers := listing(500, time.Now())
	handlerOf(n.d).Synchronize(fresh, freshContainers)
	_, starting = n.names()
	assert.Len(t, starting, 500, "starts under way may exceed the limit")
	handlerOf(n.d).Synchronize(nil, nil)
	n.slotsFree()
}

func TestARuntimeThatIsKilledIsPacedAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("waits").runs()
	a := p.waitsAtGate("app")

	n.rt.Kill()
	require.ErrorIs(t, a.result(), runtimetest.ErrDown)
	n.eventually("the daemon is not ready", func() bool { return n.d.Ready() != nil })
	require.NoError(t, n.rt.Start())
	n.connected()
	n.eventually("the daemon is ready again", func() bool { return n.d.Ready() == nil })
	_, starting := n.names()
	assert.Equal(t, []string{"holder"}, starting, "the container of the holder still runs")

	// kubelet creates the sandbox again.
	b := p.runs().starts("app")
	p.isAtGate()
	holder.getsReady()
	b.succeeds()
	n.noHookIsLeft()
}

// crash ends a container's process.
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
}
