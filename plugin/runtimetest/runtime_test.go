package runtimetest_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

func TestNewRefusesBadOptions(t *testing.T) {
	t.Parallel()
	_, err := runtimetest.New(runtimetest.Options{})
	require.ErrorContains(t, err, "Dir is empty")
	_, err = runtimetest.New(runtimetest.Options{Dir: "/tmp/" + strings.Repeat("x", 200)})
	require.ErrorContains(t, err, "a unix socket's address holds 107")
}

func TestRuntimeThatIsDown(t *testing.T) {
	t.Parallel()
	rt, err := runtimetest.New(runtimetest.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	_, err = rt.RunPod(within(t), somePod)
	require.ErrorIs(t, err, runtimetest.ErrDown)
	require.ErrorIs(t, rt.WaitPlugin(within(t), pluginName), runtimetest.ErrDown)
	_, err = rt.DropPlugins()
	require.ErrorIs(t, err, runtimetest.ErrDown)
	rt.Kill()
	require.NoError(t, rt.Stop())
	require.NoError(t, rt.Start())
	require.ErrorContains(t, rt.Start(), "runs already")
	require.NoError(t, rt.Stop())
	require.NoFileExists(t, rt.Socket())
}

func TestWaitPluginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	rt := start(t, &recorder{}, runtimetest.Options{})
	require.NoError(t, rt.WaitPlugin(within(t), pluginName))
	require.NoError(t, rt.WaitPluginGone(within(t), "other"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, rt.WaitPlugin(ended, "other"), context.Canceled)
	require.ErrorIs(t, rt.WaitPluginGone(ended, pluginName), context.Canceled)
}

func TestDroppedPluginComesBack(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, nil, runtimetest.Options{})
	connected := plugin.connect(t, rt)
	pod, ctr := runContainer(t, rt, sleeping)
	require.NoError(t, ctr.Start(within(t)))
	n, err := rt.DropPlugins()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	connected.Wait()
	require.NoError(t, rt.WaitPluginGone(within(t), pluginName))

	// No plugin is connected now.
	plugin.clear()
	other, err := rt.RunPod(within(t), runtimetest.PodSpec{Namespace: "default", Name: "other"})
	require.NoError(t, err)
	require.Empty(t, plugin.names())

	plugin.connect(t, rt)
	require.Equal(t, [][]string{nil, {"web", "other", "app:RUNNING"}}, plugin.syncs())
	require.NoError(t, other.Remove(within(t)))
	require.NoError(t, pod.Remove(within(t)))
	plugin.await(t, "StopContainer", 1)
	plugin.await(t, "RemovePodSandbox", 2)
}

func TestKilledRuntimeKeepsItsPods(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, nil, runtimetest.Options{})
	connected := plugin.connect(t, rt)
	pod, ctr := runContainer(t, rt, sleeping)
	require.NoError(t, ctr.Start(within(t)))
	dead, err := pod.CreateContainer(within(t), runtimetest.ContainerSpec{Name: "dead", Args: []string{"sleep", "1000"}})
	require.NoError(t, err)
	require.NoError(t, dead.Start(within(t)))

	rt.Kill()
	connected.Wait()
	require.NoFileExists(t, rt.Socket())
	require.ErrorIs(t, pod.Stop(within(t)), runtimetest.ErrDown)
	require.Equal(t, runtimetest.Running, ctr.Status().State)
	require.NoError(t, syscall.Kill(dead.Status().Pid, syscall.SIGKILL))
	_, err = dead.Wait(within(t))
	require.NoError(t, err)

	require.NoError(t, rt.Start())
	plugin.clear()
	plugin.connect(t, rt)
	require.Equal(t, []string{"web", "app:RUNNING"}, plugin.syncs()[1])
	// The new containerd knows nothing of the sandbox. Of containers it knows what it reported to the plugin.
	require.NoError(t, pod.Remove(within(t)))
	after, err := rt.RunPod(within(t), somePod)
	require.NoError(t, err)
	require.NoError(t, after.Remove(within(t)))
	plugin.await(t, "StopContainer", 1)
	require.ElementsMatch(t, []string{"StopContainer", "RemoveContainer", "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"}, plugin.names())
	require.Empty(t, rt.Pods())
}

func TestKillEndsRequestsUnderWay(t *testing.T) {
	t.Parallel()
	wait := newWaitingHook(t)
	rt := start(t, hooked(wait.hook()), runtimetest.Options{})
	_, ctr := runContainer(t, rt, sleeping)
	started := make(chan error, 1)
	go func() { started <- ctr.Start(within(t)) }()
	wait.awaitWaiting(t)
	rt.Kill()
	require.ErrorIs(t, <-started, runtimetest.ErrDown)
	require.Equal(t, 1, rt.Hooks())
	wait.end(t, 0)
	require.Eventually(t, func() bool { return rt.Hooks() == 0 }, testTimeout, tick)
}

func TestStoppedRuntimeForgets(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	pod, ctr := runContainer(t, rt, sleeping)
	require.NoError(t, ctr.Start(within(t)))
	pid := ctr.Status().Pid
	plugin.clear()
	require.NoError(t, rt.Stop())
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	require.Equal(t, runtimetest.Exited, ctr.Status().State)
	require.Empty(t, rt.Pods())
	require.NoError(t, rt.Start())
	require.NoError(t, pod.Remove(within(t)))
	require.Empty(t, plugin.names())
}
