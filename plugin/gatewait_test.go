package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// gateTimeout sets --gate-timeout.
func gateTimeout(d time.Duration) nodeOption {
	return with(func(o *Options) { o.GateTimeout = d })
}

func TestAPodThatIsDeletedAtTheGateStartsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("deleted").runs()
	a := p.waitsAtGate("app")

	p.isDeleted()
	require.ErrorContains(t, a.result(), "exit status 1")
	require.ErrorContains(t, a.err, string(reasons.Deleted))
	assert.Equal(t, runtimetest.Exited, a.ctr.Status().State)
	n.noHookIsLeft()
	waiting, starting := n.names()
	assert.Empty(t, waiting, "the pod has lost its place")
	assert.Equal(t, []string{"holder"}, starting)
}

// kubelet's worker for the pod sees the deletion only after the start of the waiting container has ended. Before that, it
// may create the container again, or the next one.
func TestNoContainerOfADeletedPodIsMade(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("deleted", manyContainers).runs()
	a := p.waitsAtGate("app")

	p.isDeleted()
	require.ErrorContains(t, a.result(), string(reasons.Deleted))
	for _, name := range []string{"app", "second"} {
		_, err := p.create(name)
		require.ErrorContains(t, err, "pod-pacemaker: not started: "+string(reasons.Deleted), name)
	}
	_, starting := n.names()
	assert.Equal(t, []string{"holder"}, starting)
}

func TestAPodThatIsDeletedByForceAtTheGateStartsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("deleted").runs()
	a := p.waitsAtGate("app")

	n.pods.remove(p.uid)
	require.ErrorContains(t, a.result(), string(reasons.Deleted))
	n.noHookIsLeft()
	waiting, _ := n.names()
	assert.Empty(t, waiting)
}

func TestAStaticPodKeepsItsPlaceWhenItsMirrorIsDeleted(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("static", func(pod *podwatch.Pod) { pod.Static = true }).runs()
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.Exempt)
	n.pods.remove(p.uid)
	assert.Equal(t, throttle.Starting, p.is())
	p.becomesKnown()
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
}

func TestANewerContainerReplacesTheWaitingOne(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("twice").runs()
	older := p.waitsAtGate("app")
	arrived := n.view(p.uid).Arrived

	newer := p.starts("app")
	require.ErrorContains(t, older.result(), string(gate.Replaced))
	p.isAtGate()
	assert.Equal(t, arrived, n.view(p.uid).Arrived, "the pod keeps its place")
	assert.False(t, newer.over())
	holder.getsReady()
	newer.succeeds()
	assert.Equal(t, runtimetest.Exited, older.ctr.Status().State)
}

func TestAContainerThatIsRemovedAtTheGateStartsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("removed").runs()
	a := p.waitsAtGate("app")
	sandbox, ctr := message(p, a)
	require.NoError(t, n.d.handler.RemoveContainer(n.ctx, sandbox, ctr))
	require.ErrorContains(t, a.result(), string(gate.Replaced))
	assert.Equal(t, throttle.Waiting, p.is(), "the pod keeps its place")
}

// gateShort is a gate timeout that is short enough for a test, and long enough for a hook to reach the gate.
const gateShort = 3 * time.Second

func TestAWaitThatEndsAloneIsAdmittedOverTheLimit(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, gateTimeout(gateShort))
	n.occupy("holder")
	p := n.pod("impatient").runs()
	p.starts("app").succeeds()
	p.becomes(throttle.Starting, reasons.GateDeadline)
	_, starting := n.names()
	assert.Len(t, starting, 2)
}

func TestAWaitThatEndsWhileAnotherIsOverTheLimitIsTriedAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, gateTimeout(gateShort))
	holder := n.occupy("holder")
	over := n.pod("over").runs()
	over.starts("app").succeeds()
	over.becomes(throttle.Starting, reasons.GateDeadline)

	p := n.pod("expired").runs()
	a := p.starts("app")
	require.ErrorContains(t, a.result(), string(reasons.GateExpired))
	v := n.view(p.uid)
	assert.Equal(t, throttle.Waiting, v.State, "the pod keeps its place")
	n.eventually("the expired wait is counted", func() bool { return counted(t, n, "pod_pacemaker_gate_expired_total") == 1 })

	holder.getsReady()
	over.getsReady()
	p.startsNow("app")
	assert.Equal(t, v.Arrived, n.view(p.uid).Arrived)
}

func TestMaxWaitAdmitsOnePodOverTheLimit(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	first := n.pod("first").runs()
	a := first.waitsAtGate("app")
	second := n.pod("second").runs()
	b := second.waitsAtGate("app")
	n.reconfigure("spec: {maxWait: 1s, throttleConfig: {maxConcurrent: {value: 1}}}")

	a.succeeds() // the longest wait goes first
	first.becomes(throttle.Starting, reasons.MaxWait)
	assert.False(t, b.over(), "only one pod at a time is over the limit")
	assert.Equal(t, throttle.Waiting, second.is())
	first.getsReady()
	b.succeeds()
}

func TestAPodWaitsAtMostATenthOfItsDeadline(t *testing.T) {
	t.Parallel()
	const tenth = 45 * time.Second
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("hasty", func(pod *podwatch.Pod) { pod.ActiveDeadline = 10 * tenth }).runs()
	a := p.waitsAtGate("app")
	due := n.view(p.uid).Arrived.Add(tenth)
	n.d.limiter.Advance(due.Add(-time.Second))
	assert.Equal(t, throttle.Waiting, n.view(p.uid).State)
	n.d.limiter.Advance(due)
	a.succeeds()
	p.becomes(throttle.Starting, reasons.MaxWait)
}

func TestTheGateSendsHooksTheirPace(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	n.pod("first").runs().waitsAtGate("app")
	p := n.pod("second").runs()
	h := gate.Hello{PodUID: p.uid, ContainerID: "by-hand", Name: "default/second", Deadline: time.Now().Add(time.Hour)}
	told := make(chan int, 100)
	ctx, leave := contextOf(n)
	n.kept.Go(func() {
		_, err := n.backend().Wait(ctx, h, func(at time.Time, position int, _ time.Duration) {
			if at.After(time.Now()) {
				told <- position
			}
		})
		assert.ErrorIs(t, err, ctx.Err())
	})
	n.eventually("the second hook gets its position", func() bool { return len(told) > 0 && <-told == 2 })
	leave()
	assert.Empty(t, n.latest(p.uid), "a container that only its hook reported has no record")
}

func TestNoRecordIsLeftOfAnUnknownHook(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	before := n.records()
	h := gate.Hello{PodUID: "stranger", ContainerID: "by-hand", Name: "default/stranger", Deadline: time.Now().Add(time.Hour)}
	v, err := n.backend().Wait(n.ctx, gate.Hello{PodUID: h.PodUID, ContainerID: h.ContainerID, Deadline: time.Now()}, func(time.Time, int, time.Duration) {})
	require.NoError(t, err)
	assert.True(t, v.Go, "its deadline is over, and no other pod is over the limit")
	n.d.limiter.Lookup("stranger").End(time.Now(), reasons.Deleted)
	n.eventually("its record is forgotten", func() bool { return n.records() == before })
}

func TestALostGoKeepsTheSlotForTheNextAttempt(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("lost").runs()
	h := gate.Hello{PodUID: p.uid, ContainerID: "by-hand", Name: "default/lost", Deadline: time.Now().Add(time.Hour)}
	decided := make(chan gate.Verdict, 1)
	n.kept.Go(func() {
		v, err := n.backend().Wait(n.ctx, h, func(time.Time, int, time.Duration) {})
		assert.NoError(t, err)
		decided <- v
	})
	n.eventually("the hook waits", func() bool { return n.view(p.uid).Present })
	holder.getsReady()
	require.True(t, (<-decided).Go)
	p.becomes(throttle.Starting, reasons.WithinLimits) // and no process starts

	other := n.pod("other").runs().waitsAtGate("app")
	p.startsNow("app")
	assert.False(t, other.over(), "the lost start holds the only slot")
	p.getsReady()
	other.succeeds()
}

func TestAContainerWithALongNameCanWait(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod(strings.Repeat("n", 253)).runs()
	a := p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
}

// If the runtime is killed, the hook removes the cgroup that runc has made for the container.
func TestTheHookIsToldTheCgroupOfItsContainer(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("waits")
	p.spec.CgroupParent = "/kubepods/pod1"
	a := p.runs().waitsAtGate("app")
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var hooks []string
	for _, p := range processes {
		line, _ := os.ReadFile(p) // a process may have ended meanwhile
		if strings.Contains(string(line), " container="+a.ctr.ID()+" ") {
			hooks = append(hooks, string(line))
		}
	}
	require.NotEmpty(t, hooks)
	for _, hook := range hooks { // and the shell that runs it
		assert.Contains(t, hook, "\x00/kubepods/pod1/"+a.ctr.ID()+"\x00")
	}
}
