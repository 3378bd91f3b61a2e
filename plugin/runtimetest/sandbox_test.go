package runtimetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

func TestAcceptedSandbox(t *testing.T) {
	t.Parallel()
	plugin := &recorder{}
	rt := start(t, plugin, runtimetest.Options{})
	pod, err := rt.RunPod(within(t), somePod)
	require.NoError(t, err)
	require.Len(t, rt.Pods(), 1)

	seen := plugin.last(t, "RunPodSandbox").pod
	require.Equal(t, "web", seen.Name)
	require.Equal(t, "default", seen.Namespace)
	require.NotEmpty(t, seen.Uid)
	require.Equal(t, pod.ID(), seen.Id)
	require.Equal(t, "web", seen.Labels["app"])
	require.Equal(t, "/kubepods/podx", seen.Linux.CgroupParent)
	require.Equal(t, "/kubepods/podx/"+pod.ID(), seen.Linux.CgroupsPath)

	require.NoError(t, pod.Stop(within(t)))
	require.NoError(t, pod.Stop(within(t)))
	_, err = pod.CreateContainer(within(t), sleeping)
	require.ErrorContains(t, err, "is not running")
	require.NoError(t, pod.Remove(within(t)))
	require.NoError(t, pod.Remove(within(t)))
	require.Empty(t, rt.Pods())
	require.Equal(t, []string{"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"}, plugin.names())
}

func TestRefusedSandbox(t *testing.T) {
	t.Parallel()
	plugin := &recorder{runPod: func(context.Context, *api.PodSandbox) error { return errors.New("three are ahead") }}
	rt := start(t, plugin, runtimetest.Options{})
	_, err := rt.RunPod(within(t), somePod)
	require.ErrorContains(t, err, "three are ahead")
	require.Empty(t, rt.Pods())
	require.Equal(t, []string{"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"}, plugin.names())
	require.Equal(t, plugin.last(t, "RunPodSandbox").pod.Id, plugin.last(t, "RemovePodSandbox").pod.Id)
}

// After a request has ended, its events can reach the plugin before the request's handler returns.
func TestCancelledSandbox(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(within(t))
	release, left := make(chan struct{}), make(chan struct{})
	plugin := &recorder{runPod: func(context.Context, *api.PodSandbox) error {
		defer close(left)
		cancel()
		<-release
		return nil
	}}
	rt := start(t, plugin, runtimetest.Options{})
	_, err := rt.RunPod(ctx, somePod)
	require.ErrorIs(t, err, context.Canceled)
	plugin.await(t, "StopPodSandbox", 1)
	plugin.await(t, "RemovePodSandbox", 1)
	close(release)
	<-left
	require.Empty(t, rt.Pods())
}
