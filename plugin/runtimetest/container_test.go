package runtimetest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// runContainer runs a pod with one container, which is only created.
func runContainer(t *testing.T, rt *runtimetest.Runtime, spec runtimetest.ContainerSpec) (*runtimetest.Pod, *runtimetest.Container) {
	t.Helper()
	pod, err := rt.RunPod(within(t), somePod)
	require.NoError(t, err)
	ctr, err := pod.CreateContainer(within(t), spec)
	require.NoError(t, err)
	return pod, ctr
}

func TestContainerLife(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	pod, ctr := runContainer(t, rt, sleeping)
	require.Equal(t, runtimetest.Created, ctr.Status().State)
	require.NoError(t, ctr.Start(within(t)))
	running := ctr.Status()
	require.Equal(t, runtimetest.Running, running.State)
	require.NoError(t, syscall.Kill(running.Pid, 0))
	require.Equal(t, []string{"RunPodSandbox", "CreateContainer", "PostStartContainer"}, plugin.names())

	created := plugin.last(t, "CreateContainer").container
	require.Equal(t, api.ContainerState_CONTAINER_UNKNOWN, created.State)
	require.Equal(t, "app", created.Name)
	require.Equal(t, "/kubepods/podx/"+ctr.ID(), created.Linux.CgroupsPath)
	require.Equal(t, pod.ID(), created.PodSandboxId)
	require.EqualValues(t, running.Pid, plugin.last(t, "PostStartContainer").container.Pid)
	require.Equal(t, api.ContainerState_CONTAINER_RUNNING, plugin.last(t, "PostStartContainer").container.State)

	require.ErrorContains(t, ctr.Start(within(t)), "Running state")
	plugin.clear()
	require.NoError(t, ctr.Stop(within(t), testTimeout))
	status := ctr.Status()
	require.Equal(t, runtimetest.Exited, status.State)
	require.Equal(t, 128+int(syscall.SIGTERM), status.ExitCode)
	require.ErrorIs(t, syscall.Kill(running.Pid, 0), syscall.ESRCH)
	require.NoError(t, pod.Remove(within(t)))
	require.Equal(t, []string{"StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"}, plugin.names())
	require.NoError(t, ctr.Remove(within(t)))
	require.NoError(t, ctr.Stop(within(t), 0))
}

// This test runs its binary again and kills that. The output of the container ends when nobody holds it open.
func TestAContainerEndsWithTheTestBinary(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONTAINER_OF_A_KILLED_BINARY") != "" {
		_, ctr := runContainer(t, start(t, nil, runtimetest.Options{}), runtimetest.ContainerSpec{
			Name: "app", Args: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: os.Stdout,
		})
		require.NoError(t, ctr.Start(within(t)))
		<-within(t).Done()
		return
	}
	output, theirs, err := os.Pipe()
	require.NoError(t, err)
	defer output.Close()
	require.NoError(t, output.SetReadDeadline(time.Now().Add(testTimeout)))
	binary := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	binary.Env, binary.Stdout = append(os.Environ(), "CONTAINER_OF_A_KILLED_BINARY=1"), theirs
	require.NoError(t, binary.Start())
	require.NoError(t, theirs.Close())
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.NoError(t, binary.Process.Kill())
	require.Error(t, binary.Wait())
	_, err = io.Copy(io.Discard, output)
	require.NoError(t, err, "the container outlives the test binary")
}

func TestExitSendsStopContainer(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	var out bytes.Buffer
	_, ctr := runContainer(t, rt, runtimetest.ContainerSpec{
		Name: "app", Args: []string{"sh", "-c", "echo hello; exit 3"}, Stdout: &out,
	})
	require.NoError(t, ctr.Start(within(t)))
	status, err := ctr.Wait(within(t))
	require.NoError(t, err)
	require.Equal(t, 3, status.ExitCode)
	require.Equal(t, "hello\n", out.String())
	plugin.await(t, "StopContainer", 1)
	stopped := plugin.last(t, "StopContainer").container
	require.Equal(t, api.ContainerState_CONTAINER_STOPPED, stopped.State)
	require.EqualValues(t, 3, stopped.ExitCode)

	plugin.clear()
	require.NoError(t, ctr.Stop(within(t), 0))
	require.NoError(t, ctr.Remove(within(t)))
	require.Equal(t, []string{"RemoveContainer"}, plugin.names())
	require.Equal(t, api.ContainerState_CONTAINER_UNKNOWN, plugin.last(t, "RemoveContainer").container.State)
}

func TestStoppedSandboxKillsItsContainers(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	pod, ctr := runContainer(t, rt, runtimetest.ContainerSpec{Name: "app", Args: []string{"sh", "-c", "sleep 1000 & trap '' TERM; wait; sleep 1000"}})
	require.NoError(t, ctr.Start(within(t)))
	require.NoError(t, pod.Stop(within(t)))
	require.Equal(t, 128+int(syscall.SIGKILL), ctr.Status().ExitCode)
	plugin.await(t, "StopContainer", 1)
	_, err := pod.CreateContainer(within(t), sleeping)
	require.ErrorContains(t, err, "is not running")
	require.NoError(t, pod.Remove(within(t)))
	require.Equal(t, "RemovePodSandbox", plugin.names()[len(plugin.names())-1])
}

func TestStopGraceEndsInAKill(t *testing.T) {
	t.Parallel()
	rt := start(t, nil, runtimetest.Options{})
	ready := newSignal("ready")
	_, ctr := runContainer(t, rt, runtimetest.ContainerSpec{Name: "app", Args: []string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"}, Stdout: ready})
	require.NoError(t, ctr.Start(within(t)))
	ready.await(t)
	require.NoError(t, ctr.Stop(within(t), 10*time.Millisecond))
	require.Equal(t, 128+int(syscall.SIGKILL), ctr.Status().ExitCode)
}

func TestRefusedCreate(t *testing.T) {
	t.Parallel()
	plugin := &recorder{create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
		return nil, errors.New("not yet")
	}}
	rt := start(t, plugin, runtimetest.Options{})
	pod, err := rt.RunPod(within(t), somePod)
	require.NoError(t, err)
	_, err = pod.CreateContainer(within(t), sleeping)
	require.ErrorContains(t, err, "not yet")
	require.Equal(t, []string{"RunPodSandbox", "CreateContainer", "StopContainer", "RemoveContainer"}, plugin.names())
	removed := plugin.last(t, "RemoveContainer").container
	require.Equal(t, plugin.last(t, "CreateContainer").container.Id, removed.Id)
	require.Equal(t, "app", removed.Name)
	require.Equal(t, pod.ID(), removed.PodSandboxId)
	require.Equal(t, api.ContainerState_CONTAINER_UNKNOWN, removed.State)

	plugin.create = nil
	ctr, err := pod.CreateContainer(within(t), sleeping)
	require.NoError(t, err)
	require.NoError(t, ctr.Start(within(t)))
}

func TestMissingProgramFailsTheStartWithoutEvents(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	for _, program := range []string{"no-such-program", "/no/such/program"} {
		_, ctr := runContainer(t, rt, runtimetest.ContainerSpec{Name: "app", Args: []string{program}})
		plugin.clear()
		require.ErrorContains(t, ctr.Start(within(t)), program)
		require.Empty(t, plugin.names())
		require.Equal(t, runtimetest.Exited, ctr.Status().State)
		require.Equal(t, 128, ctr.Status().ExitCode)
		require.NoError(t, ctr.Remove(within(t)))
		require.Equal(t, []string{"StopContainer", "RemoveContainer"}, plugin.names())
	}
}

func TestUnsupportedAdjustmentFailsTheCreate(t *testing.T) {
	t.Parallel()
	adjustments := map[string]func(*api.ContainerAdjustment){
		"mounts":   func(a *api.ContainerAdjustment) { a.AddMount(&api.Mount{Destination: "/x", Source: "/y"}) },
		"env":      func(a *api.ContainerAdjustment) { a.AddEnv("ADDED", "yes") },
		"memory":   func(a *api.ContainerAdjustment) { a.SetLinuxMemoryLimit(1 << 20) },
		"poststop": func(a *api.ContainerAdjustment) { a.AddHooks(&api.Hooks{Poststop: []*api.Hook{{Path: "/x"}}}) },
		"timeout": func(a *api.ContainerAdjustment) {
			a.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{{Path: "/x", Timeout: api.Int(1)}}})
		},
	}
	for what, adjust := range adjustments {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			plugin := &recorder{create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
				a := &api.ContainerAdjustment{}
				adjust(a)
				return a, nil
			}}
			rt := start(t, plugin, runtimetest.Options{})
			pod, err := rt.RunPod(within(t), somePod)
			require.NoError(t, err)
			_, err = pod.CreateContainer(within(t), sleeping)
			require.ErrorContains(t, err, what)
			require.Equal(t, []string{"RunPodSandbox", "CreateContainer", "StopContainer", "RemoveContainer"}, plugin.names())
		})
	}
}
