package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// unprobed removes the probes of a pod.
func unprobed(pod *podwatch.Pod) { pod.Probed = false }

// containers gives a pod containers of these kinds.
func containers(kinds map[string]podwatch.Kind) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		pod.Containers = map[string]podwatch.Container{}
		for name, kind := range kinds {
			pod.Containers[name] = podwatch.Container{Kind: kind}
		}
	}
}

// stillStarting asserts that the report did not end the start.
func (p *testPod) stillStarting(why string) {
	p.n.t.Helper()
	p.n.d.starts.Wake()
	ctx, cancel := context.WithTimeout(p.n.ctx, patience)
	defer cancel()
	require.NoError(p.n.t, p.n.d.starts.Alive(ctx), "the loop has looked at all starts")
	assert.Equal(p.n.t, throttle.Starting, p.is(), why)
}

func TestAProbedPodEndsWhenItsContainersAreReady(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("probed")
	p.reports()
	p.stillStarting("the containers run, but are not ready")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
	n.slotsFree()
}

func TestAReportOfAnEarlierContainerEndsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("rebooted", func(pod *podwatch.Pod) {
		// This is kubelet's report from before the node went down.
		pod.Phase, pod.ContainersReady, pod.AllRunning, pod.CrashLooping = corev1.PodRunning, true, true, true
		pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, ID: "from-before"}}
	}).runs()
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
	p.stillStarting("the report is about another container")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
}

func TestAPodWithoutProbesEndsAfterTheSettleTime(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {settleTime: 300ms, throttleConfig: {maxConcurrent: {value: 1}}}")
	p := n.pod("unprobed", unprobed).runs()
	p.startsNow("app")
	started := time.Now()
	p.reports()
	p.becomes(throttle.Started, reasons.Settled)
	v := n.view(p.uid)
	assert.GreaterOrEqual(t, v.Ended.Sub(v.Admitted), 300*time.Millisecond)
	assert.WithinRange(t, v.Ended, started, time.Now())
}

func TestAPodWithoutProbesKeepsItsSlotUntilAllOfItRuns(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {settleTime: 0s, throttleConfig: {maxConcurrent: {value: 1}}}")
	p := n.pod("two", unprobed, containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).runs()
	p.startsNow("app")
	p.reports(func(pod *podwatch.Pod) { pod.AllRunning = false })
	p.stillStarting("one container is missing")
	p.startsNow("other")
	p.reports()
	p.becomes(throttle.Started, reasons.Settled)
}

func TestAPodThatEndsGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	for phase, reason := range map[corev1.PodPhase]reasons.Reason{
		corev1.PodSucceeded: reasons.Completed,
		corev1.PodFailed:    reasons.Failed,
	} {
		n := newNode(t, oneAtATime)
		p := n.occupy("ends")
		p.reports(func(pod *podwatch.Pod) { pod.Phase = phase })
		p.becomes(throttle.Started, reason)
	}
}

func TestAPodThatEndedGivesItsPlaceUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("evicted").runs()
	a := p.waitsAtGate("app")
	p.reports(func(pod *podwatch.Pod) { pod.Phase = corev1.PodFailed })
	require.Error(t, a.result())
	p.becomes(throttle.Gone, reasons.Failed)
}

func TestTheExitOfAllContainersEndsTheStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("crashes", containers(map[string]podwatch.Kind{
		"init": podwatch.Init, "sidecar": podwatch.Sidecar, "app": podwatch.App, "other": podwatch.App,
	})).runs()
	p.startsNow("init", "true")
	p.startsNow("sidecar")
	p.startsNow("app", "sh", "-c", "exit 1")
	for _, name := range []string{"init", "app"} {
		n.eventually("the exit of "+name+" is known", func() bool { return n.exited(p.uid, name) })
	}
	p.stillStarting("the other container has not started yet")
	p.startsNow("other", "sh", "-c", "exit 1")
	p.becomes(throttle.Started, reasons.Exited)
}

func TestTheExitOfAJobsContainerIsForThePodWatchToJudge(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("job", restarted("OnFailure")).runs()
	p.startsNow("app", "sh", "-c", "exit 1")
	n.eventually("the exit is known", func() bool { return n.exited(p.uid, "app") })
	p.stillStarting("the Job may be complete, or start again")
	first := n.view(p.uid).Arrived
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
	assert.True(t, n.view(p.uid).Arrived.After(first), "the restart is a separate start")
}

func TestACrashLoopBesideARunningContainerEndsTheStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("half", containers(map[string]podwatch.Kind{"app": podwatch.App, "other": podwatch.App})).runs()
	p.startsNow("app")
	ctr := p.startsNow("other", "sh", "-c", "exit 1")
	_, err := ctr.Wait(n.ctx)
	require.NoError(t, err)
	n.eventually("the exit is known", func() bool { return n.exited(p.uid, "other") })
	p.reports(func(pod *podwatch.Pod) { pod.CrashLooping, pod.AllRunning = true, false })
	p.becomes(throttle.Started, reasons.CrashLoop)
}

func TestAProgramThatCannotStartEndsTheStartWhenKubeletGivesUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("misspelt").runs()
	a := p.starts("app", "/nowhere/program")
	require.Error(t, a.result())
	p.becomes(throttle.Starting, reasons.WithinLimits)
	n.pods.tell(p.uid, func(pod *podwatch.Pod) {
		pod.CrashLooping = true
		pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, ID: a.ctr.ID()}}
	})
	p.becomes(throttle.Started, reasons.CrashLoop)
}

func TestAnEarlierCrashLoopDoesNotEndANewStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("crashed").runs()
	ctr := p.startsNow("app", "sh", "-c", "exit 1")
	n.eventually("the exit is known", func() bool { return n.exited(p.uid, "app") })
	p.becomes(throttle.Started, reasons.Exited)
	p.reports(func(pod *podwatch.Pod) { pod.CrashLooping = true })

	p.startsNow("app") // a separate start; kubelet has not reported since
	require.NoError(t, ctr.Remove(n.ctx))
	p.stillStarting("the crash loop belongs to the earlier start")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
}

func TestAStartThatTakesTooLongIsStuckAndFreesItsSlot(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	stuck := n.occupy("stuck")
	p := n.pod("next").runs()
	a := p.waitsAtGate("app")
	n.reconfigure("spec: {startTimeout: 1s, settleTime: 0s, throttleConfig: {maxConcurrent: {value: 1}}}")
	a.succeeds()
	v := n.view(stuck.uid)
	assert.Equal(t, reasons.Stuck, v.Reason)
	assert.GreaterOrEqual(t, v.Ended.Sub(v.Admitted), time.Second)
	p.becomes(throttle.Starting, reasons.WithinLimits)
}

func TestTheEndOfASandboxEndsTheStartInIt(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("restarted")
	require.NoError(t, p.sandbox.Stop(n.ctx))
	// The runtime may report the container's exit before or after the sandbox's end.
	n.eventually("the start is over", func() bool { return p.is() != throttle.Starting })
	p.runs()
	assert.Equal(t, throttle.Waiting, p.is(), "a new sandbox is a first start")
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
}

func TestTheEndOfAnOlderSandboxEndsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.pod("moved").runs()
	older := p.sandbox
	p.runs().startsNow("app")
	require.NoError(t, older.Stop(n.ctx))
	require.NoError(t, older.Remove(n.ctx))
	p.stillStarting("the pod starts in its newer sandbox")
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)
}

func TestAWaitingPodKeepsItsPlaceWhenItsSandboxEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("restarted").runs()
	a := p.waitsAtGate("app")
	arrived := n.view(p.uid).Arrived
	require.NoError(t, p.sandbox.Stop(n.ctx))
	assert.Equal(t, throttle.Waiting, p.is())

	p.runs()
	b := p.starts("app") // in the new sandbox
	require.Error(t, a.result())
	p.isAtGate()
	assert.Equal(t, arrived, n.view(p.uid).Arrived)
	holder.getsReady()
	b.succeeds()
}

func TestNothingIsRememberedOfPodsThatAreGone(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	p := n.occupy("short")
	refused := n.pod("refused", restarted("Never")).runs()
	_, err := refused.create("app")
	require.Error(t, err)
	for _, gone := range []*testPod{p, refused} {
		gone.isDeleted()
		require.NoError(t, gone.sandbox.Remove(n.ctx))
	}
	n.slotsFree()
	n.eventually("no record is left", func() bool { return n.records() == 0 })
}
