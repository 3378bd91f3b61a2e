package runtimetest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// never is an interval that no test lives to see the end of.
const never = 24 * time.Hour

// kept is a pod in Keep and what was observed of it.
type kept struct {
	cancel context.CancelFunc
	done   chan error

	mu sync.Mutex
	// guarded by mu
	events  []runtimetest.KubeletEvent
	changed chan struct{}
}

// keep runs Keep until end is called, or the test ends.
func keep(t *testing.T, rt *runtimetest.Runtime, o runtimetest.KubeletOptions, containers ...runtimetest.ContainerSpec) *kept {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	k := &kept{cancel: cancel, done: make(chan error, 1), changed: make(chan struct{})}
	o.Observe = func(e runtimetest.KubeletEvent) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.events = append(k.events, e)
		close(k.changed)
		k.changed = make(chan struct{})
	}
	go func() { k.done <- rt.Keep(ctx, somePod, o, containers...) }()
	t.Cleanup(cancel)
	return k
}

// end ends the pod and returns what Keep returned.
func (k *kept) end(t *testing.T) error {
	t.Helper()
	k.cancel()
	return k.result(t)
}

func (k *kept) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-k.done:
		return err
	case <-time.After(patience):
		require.Failf(t, "Keep did not return", "%v", k.happened())
		return nil
	}
}

func (k *kept) happened() []runtimetest.Happening {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []runtimetest.Happening
	for _, e := range k.events {
		all = append(all, e.What)
	}
	return all
}

// await waits for the nth such event, counted from 1, and returns it.
func (k *kept) await(t *testing.T, what runtimetest.Happening, n int) runtimetest.KubeletEvent {
	t.Helper()
	deadline := time.After(patience)
	for {
		k.mu.Lock()
		found := slices.Clone(k.events)
		changed := k.changed
		k.mu.Unlock()
		found = slices.DeleteFunc(found, func(e runtimetest.KubeletEvent) bool { return e.What != what })
		if len(found) >= n {
			return found[n-1]
		}
		select {
		case <-changed:
		case <-deadline:
			require.Failf(t, "event did not come", "%d of %d %s in %v", len(found), n, what, k.happened())
		}
	}
}

func TestKeepRunsAPodUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	second := sleeping
	second.Name = "side"
	k := keep(t, rt, runtimetest.KubeletOptions{}, sleeping, second)
	k.await(t, runtimetest.ContainerStarted, 2)
	pod := plugin.last(t, "RunPodSandbox").pod
	require.Equal(t, pod.Uid, pod.Labels["io.kubernetes.pod.uid"])
	require.Equal(t, "api", pod.Annotations["kubernetes.io/config.source"])
	require.Equal(t, "web", pod.Labels["app"])
	require.Equal(t, "/kubepods/podx", pod.Linux.CgroupParent)
	require.Equal(t, "side", plugin.last(t, "CreateContainer").container.Labels["io.kubernetes.container.name"])
	require.NoError(t, k.end(t))
	require.Empty(t, rt.Pods())
	require.Equal(t, "RemovePodSandbox", plugin.names()[len(plugin.names())-1])
	require.Equal(t, []runtimetest.Happening{"SandboxRun", "ContainerStarts", "ContainerStarted", "ContainerStarts",
		"ContainerStarted", "ContainerExited", "ContainerExited", "PodRemoved"}, k.happened())
}

func TestKeepRetriesARefusedSandbox(t *testing.T) {
	t.Parallel()
	const interval = 20 * time.Millisecond
	var tries atomic.Int32
	plugin := &recorder{runPod: func(context.Context, *api.PodSandbox) error {
		if tries.Add(1) < 3 {
			return errors.New("not your turn")
		}
		return nil
	}}
	rt := start(t, plugin, runtimetest.Options{})
	k := keep(t, rt, runtimetest.KubeletOptions{RetryInterval: interval}, sleeping)
	k.await(t, runtimetest.ContainerStarted, 1)
	first, second := k.await(t, runtimetest.SandboxRefused, 1), k.await(t, runtimetest.SandboxRefused, 2)
	require.ErrorContains(t, first.Err, "not your turn")
	require.GreaterOrEqual(t, second.Time.Sub(first.Time), interval)
	require.NoError(t, k.end(t))
	uids, ids := map[string]bool{}, map[string]bool{}
	for _, e := range plugin.all("RunPodSandbox") {
		uids[e.pod.Uid], ids[e.pod.Id] = true, true
	}
	require.Len(t, uids, 1)
	require.Len(t, ids, 3)
}

func TestKeepRetriesARefusedCreateAtOnceThenLater(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	plugin := &recorder{create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
		if tries.Add(1) < 3 {
			return nil, errors.New("not your turn")
		}
		return nil, nil
	}}
	rt := start(t, plugin, runtimetest.Options{})

	k := keep(t, rt, runtimetest.KubeletOptions{RetryInterval: never}, sleeping)
	k.await(t, runtimetest.CreateRefused, 2)
	require.NoError(t, k.end(t))
	require.EqualValues(t, 2, tries.Load())

	tries.Store(0)
	k = keep(t, rt, runtimetest.KubeletOptions{RetryInterval: time.Millisecond}, sleeping)
	k.await(t, runtimetest.ContainerStarted, 1)
	require.Equal(t, 1, countOf(k.happened(), runtimetest.SandboxRun))
	require.NoError(t, k.end(t))
}

func countOf(all []runtimetest.Happening, what runtimetest.Happening) int {
	n := 0
	for _, h := range all {
		if h == what {
			n++
		}
	}
	return n
}

func TestKeepStartsAFailedStartAgain(t *testing.T) {
	t.Parallel()
	plugin := hooked(&api.Hook{Path: script(t, `[ -e "$1/failed-2" ] && exit 0
[ -e "$1/failed-1" ] && : > "$1/failed-2"
: > "$1/failed-1"; exit 1`), Args: []string{"hook", t.TempDir()}})
	rt := start(t, plugin, runtimetest.Options{})
	const backOff = 20 * time.Millisecond
	k := keep(t, rt, runtimetest.KubeletOptions{RetryInterval: never, BackOff: backOff}, sleeping)
	k.await(t, runtimetest.ContainerStarted, 1)
	require.GreaterOrEqual(t, k.await(t, runtimetest.ContainerStarts, 3).Time.Sub(k.await(t, runtimetest.StartFailed, 2).Time), backOff-time.Millisecond)
	require.Equal(t, 1, countOf(k.happened(), runtimetest.SandboxRun))
	// The last but one dead container has been removed, the last is kept.
	require.Len(t, plugin.all("RemoveContainer"), 1)
	require.NoError(t, k.end(t))
}

func TestKeepBacksOffFromTheSecondRestart(t *testing.T) {
	t.Parallel()
	const backOff = 30 * time.Millisecond
	rt := start(t, nil, runtimetest.Options{})
	k := keep(t, rt, runtimetest.KubeletOptions{BackOff: backOff, MaxBackOff: backOff}, runtimetest.ContainerSpec{Name: "app", Args: []string{"true"}})
	k.await(t, runtimetest.ContainerStarts, 4)
	require.NoError(t, k.end(t))

	k = keep(t, rt, runtimetest.KubeletOptions{BackOff: never}, runtimetest.ContainerSpec{Name: "app", Args: []string{"true"}})
	k.await(t, runtimetest.ContainerExited, 2)
	require.NoError(t, k.end(t))
	require.Equal(t, 2, countOf(k.happened(), runtimetest.ContainerStarts))
}

func TestKeepRestartPolicies(t *testing.T) {
	t.Parallel()
	rt := start(t, nil, runtimetest.Options{})
	fails := runtimetest.ContainerSpec{Name: "app", Args: []string{"sh", "-c", "exit 4"}}
	works := runtimetest.ContainerSpec{Name: "app", Args: []string{"true"}}

	k := keep(t, rt, runtimetest.KubeletOptions{RestartPolicy: runtimetest.RestartNever}, works, fails)
	err := k.result(t)
	require.ErrorIs(t, err, runtimetest.ErrPodFailed)
	require.ErrorContains(t, err, "exit code 4")
	codes := []int{k.await(t, runtimetest.ContainerExited, 1).ExitCode, k.await(t, runtimetest.ContainerExited, 2).ExitCode}
	require.ElementsMatch(t, []int{0, 4}, codes)

	k = keep(t, rt, runtimetest.KubeletOptions{RestartPolicy: runtimetest.RestartOnFailure}, works)
	require.NoError(t, k.result(t))

	flag := filepath.Join(t.TempDir(), "flag")
	once := runtimetest.ContainerSpec{Name: "app", Args: []string{"sh", "-c", `[ -e "$0" ] && exit 0; : > "$0"; exit 1`, flag}}
	k = keep(t, rt, runtimetest.KubeletOptions{RestartPolicy: runtimetest.RestartOnFailure}, once)
	require.NoError(t, k.result(t))
	require.Equal(t, 2, countOf(k.happened(), runtimetest.ContainerStarts))
	require.FileExists(t, flag)
	require.NoError(t, os.Remove(flag))

	k = keep(t, rt, runtimetest.KubeletOptions{RestartPolicy: runtimetest.RestartNever}, runtimetest.ContainerSpec{Name: "app", Args: []string{"no-such-program"}})
	require.ErrorContains(t, k.result(t), "StartError")
	require.Empty(t, rt.Pods())
}

func TestKeepWaitsForTheRequestUnderWay(t *testing.T) {
	t.Parallel()
	wait := newWaitingHook(t)
	rt := start(t, hooked(wait.hook(t)), runtimetest.Options{})
	k := keep(t, rt, runtimetest.KubeletOptions{}, sleeping)
	wait.awaitWaiting(t)
	k.cancel()
	require.Len(t, rt.Pods(), 1)
	wait.end(t, 0)
	require.NoError(t, k.result(t))
	require.Empty(t, rt.Pods())
	require.Contains(t, k.happened(), runtimetest.ContainerStarted)
}

func TestKeepGivesUpARequestAfterItsTimeout(t *testing.T) {
	t.Parallel()
	rt := start(t, nil, runtimetest.Options{})
	ready := newSignal("ready")
	stubborn := runtimetest.ContainerSpec{Name: "app", Args: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"}, Stdout: ready}
	k := keep(t, rt, runtimetest.KubeletOptions{RequestTimeout: 300 * time.Millisecond, BackOff: time.Millisecond, StopGrace: never}, stubborn)
	ready.await(t)
	require.ErrorIs(t, k.end(t), context.DeadlineExceeded)
	require.Len(t, rt.Pods(), 1)
	require.ErrorIs(t, k.await(t, runtimetest.PodRemoved, 1).Err, context.DeadlineExceeded)
}

func TestKeepMakesThePodAnewAfterARestartOfTheRuntime(t *testing.T) {
	t.Parallel()
	wait := newWaitingHook(t)
	plugin := hooked(wait.hook(t))
	rt := start(t, plugin, runtimetest.Options{})
	k := keep(t, rt, runtimetest.KubeletOptions{RetryInterval: time.Millisecond}, sleeping)
	wait.awaitWaiting(t)
	before := rt.Pods()
	rt.Kill()
	require.ErrorIs(t, k.await(t, runtimetest.StartFailed, 1).Err, runtimetest.ErrDown)
	require.NoError(t, rt.Start(within(t)))
	k.await(t, runtimetest.ContainerStarted, 1)
	after := rt.Pods()
	require.Len(t, after, 1)
	require.NotEqual(t, before[0].ID(), after[0].ID())
	require.Equal(t, before[0].UID(), after[0].UID())
	require.NoError(t, k.end(t))

	k = keep(t, rt, runtimetest.KubeletOptions{RetryInterval: time.Millisecond}, sleeping)
	k.await(t, runtimetest.ContainerStarted, 1)
	require.NoError(t, rt.Stop())
	require.NoError(t, rt.Start(within(t)))
	k.await(t, runtimetest.ContainerStarted, 2)
	require.NoError(t, rt.Stop())
	require.NoError(t, k.end(t))
}
