package runtimetest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// never is an interval that is longer than any test.
const never = 24 * time.Hour

// refuses returns a function that fails the given number of times.
func refuses(times int32) func() error {
	var tries atomic.Int32
	return func() error {
		if tries.Add(1) > times {
			return nil
		}
		return errors.New("not your turn")
	}
}

func TestKeepAsksAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	sandbox, create := refuses(2), refuses(2)
	plugin := &recorder{
		runPod: func(context.Context, *api.PodSandbox) error { return sandbox() },
		create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
			return nil, create()
		},
	}
	rt := start(t, plugin, runtimetest.Options{})
	c, err := rt.Keep(t.Context(), somePod, time.Millisecond, sleeping)
	require.NoError(t, err)
	require.Equal(t, runtimetest.Running, c.Status().State)
	uids, ids := map[string]bool{}, map[string]bool{}
	for _, e := range plugin.all("RunPodSandbox") {
		uids[e.pod.Uid], ids[e.pod.Id] = true, true
	}
	require.Len(t, uids, 1, "all attempts belong to one pod")
	require.Len(t, ids, 3, "each attempt has a new sandbox")
	require.Len(t, plugin.all("CreateContainer"), 3)

	pod := plugin.last(t, "RunPodSandbox").pod
	require.Equal(t, "api", pod.Annotations["kubernetes.io/config.source"])
	require.Equal(t, "web", pod.Labels["app"])
	require.Equal(t, "/kubepods/podx", pod.Linux.CgroupParent)
}

func TestKeepAsksForARefusedCreateOnceAtOnce(t *testing.T) {
	t.Parallel()
	refuse, twice := refuses(1<<30), make(chan struct{}, 8)
	rt := start(t, &recorder{create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
		twice <- struct{}{}
		return nil, refuse()
	}}, runtimetest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	kept := make(chan error, 1)
	go func() {
		_, err := rt.Keep(ctx, somePod, never, sleeping)
		kept <- err
	}()
	<-twice
	<-twice
	cancel()
	require.ErrorIs(t, <-kept, context.Canceled)
	require.Empty(t, twice, "a third attempt would have waited")
}

func TestKeepStartsAFailedStartAgain(t *testing.T) {
	t.Parallel()
	plugin := hooked(shell(`[ -e "$1/failed" ] && exit 0; : > "$1/failed"; exit 1`, t.TempDir()))
	rt := start(t, plugin, runtimetest.Options{})
	c, err := rt.Keep(t.Context(), somePod, time.Millisecond, sleeping)
	require.NoError(t, err)
	require.Equal(t, runtimetest.Running, c.Status().State)
	require.Len(t, plugin.all("CreateContainer"), 2)
	require.Len(t, plugin.all("RunPodSandbox"), 1)
}
