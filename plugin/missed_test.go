package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// runtimeAsked counts how often the runtime is asked again.
func runtimeAsked(m *missedStarts) *int {
	n := new(int)
	m.ask = func() { *n++ }
	return n
}

func nothingKnown(string, string) bool { return false }

func TestTheRuntimeIsAskedAgainOnceForWhatOnlyKubeletKnows(t *testing.T) {
	t.Parallel()
	m := newMissedStarts()
	asked := runtimeAsked(m)
	pod := podwatch.Pod{UID: "u", RunningSince: now0.Add(time.Second)}
	assert.False(t, m.report(now0, pod, "c1"), "before the runtime told what it runs")
	m.told(now0)
	assert.True(t, m.report(now0, pod, "c1"))
	assert.False(t, m.report(now0.Add(time.Second), pod, "c1"), "nothing new")
	again := m.due(now0.Add(time.Second), nothingKnown)
	assert.Equal(t, now0.Add(missedAfter), again)
	assert.Zero(t, *asked)
	assert.Zero(t, m.due(again, nothingKnown))
	assert.Equal(t, 1, *asked)
	assert.Zero(t, m.due(again.Add(time.Hour), nothingKnown), "the runtime does not know it either")
	assert.Equal(t, 1, *asked)
}

func TestTheRuntimeIsAskedAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	m := newMissedStarts()
	asked := runtimeAsked(m)
	m.told(now0)
	m.report(now0, podwatch.Pod{UID: "u1", RunningSince: now0}, "c1")
	first := now0.Add(missedAfter)
	m.report(now0.Add(2*time.Second), podwatch.Pod{UID: "u2", RunningSince: now0}, "c2")
	assert.Equal(t, now0.Add(2*time.Second+missedAfter), m.due(first, nothingKnown))
	assert.Equal(t, first.Add(missedEvery), m.due(now0.Add(10*time.Second), nothingKnown))
	assert.Equal(t, 1, *asked)
	m.due(first.Add(missedEvery), nothingKnown)
	assert.Equal(t, 2, *asked)
}

func TestWhatTheRuntimeToldMeanwhileOrKubeletTookBackIsForgotten(t *testing.T) {
	t.Parallel()
	m := newMissedStarts()
	asked := runtimeAsked(m)
	m.told(now0)
	m.report(now0, podwatch.Pod{UID: "told", RunningSince: now0}, "c1")
	m.report(now0, podwatch.Pod{UID: "gone", RunningSince: now0}, "c2")
	m.report(now0, podwatch.Pod{UID: "gone"}, "")
	m.report(now0, podwatch.Pod{UID: "long ago", RunningSince: now0.Add(-time.Hour)}, "c3")
	assert.Zero(t, m.due(now0.Add(time.Hour), func(uid, _ string) bool { return uid == "told" }))
	assert.Zero(t, *asked)
	assert.Empty(t, m.pods)
}

// What kubelet reports of a pod is a map, in no order.
func TestKubeletsWordForOneOfSeveralContainersGrowsOld(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{Log: discard()}, nil, newMetrics())
	asked := runtimeAsked(p.missed)
	p.missed.told(now0)
	pod := podwatch.Pod{UID: "u", RunningSince: now0, Containers: map[string]podwatch.Container{}}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		pod.Containers[name] = podwatch.Container{Kind: podwatch.App, Running: true, ID: "id-" + name}
	}
	for i := range 20 {
		p.compare(now0.Add(time.Duration(i)*time.Second/4), pod, false)
	}
	p.missed.due(now0.Add(missedAfter), nothingKnown)
	assert.Equal(t, 1, *asked)
}

func TestAStartThatTheRuntimeDidNotTellOfIsFoundByThePodWatch(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	missed := n.pod("missed").runs()
	missed.startsNow("app")
	missed.becomes(throttle.Starting, throttle.WithinLimits)
	// The daemon forgets it, as if its events had been lost.
	n.p.forget(time.Now(), missed.uid)
	n.p.limiter.Lookup(missed.uid).End(time.Now(), throttle.SandboxGone)

	// So long ago that the runtime is asked at once.
	now := time.Now().Add(-missedAfter)
	n.p.missed.told(now)
	pod, _ := n.pods.Get(missed.uid)
	pod.RunningSince, pod.Containers = now, map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, ID: missed.started[0].ID()}}
	n.p.compare(now, pod, false)
	missed.becomes(throttle.Starting, throttle.Adopted)
	n.eventually("it is counted", func() bool { return counted(t, n, "pod_pacemaker_unpaced_total") == 1 })
	missed.getsReady()
	missed.becomes(throttle.Started, throttle.Ready)
}
