package runtimetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// A handler that waits blocks every other event of the node.
func TestWaitingHandlerBlocksAllEvents(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	plugin := &recorder{}
	plugin.runPod = func(_ context.Context, p *api.PodSandbox) error {
		if p.Name != "slow" {
			return nil
		}
		close(entered)
		<-leave
		plugin.add("left", nil, nil)
		return nil
	}
	rt := start(t, plugin, runtimetest.Options{})
	_, starting := runContainer(t, rt, sleeping)
	_, exiting := runContainer(t, rt, sleeping)
	require.NoError(t, exiting.Start(within(t)))
	plugin.clear()

	results := make(chan error, 4)
	go func() {
		_, err := rt.RunPod(within(t), runtimetest.PodSpec{Namespace: "default", Name: "slow"})
		results <- err
	}()
	<-entered
	go func() {
		_, err := rt.RunPod(within(t), runtimetest.PodSpec{Namespace: "default", Name: "other"})
		results <- err
	}()
	go func() { results <- starting.Start(within(t)) }()
	go func() { results <- exiting.Stop(within(t), 0) }()
	_, err := exiting.Wait(within(t))
	require.NoError(t, err)
	time.Sleep(50 * time.Millisecond) // gives a broken lock the time to show; no result depends on it
	close(leave)
	for range cap(results) {
		require.NoError(t, <-results)
	}
	names := plugin.names()
	require.Equal(t, []string{"RunPodSandbox", "left"}, names[:2])
	require.ElementsMatch(t, []string{"RunPodSandbox", "PostStartContainer", "StopContainer"}, names[2:])
}

// This test changes the request timeout, so it must not run beside other tests. A short timeout before the plugin is
// connected would make the connection fail on a machine that is slow for a moment.
func TestLateAnswerDisconnectsThePlugin(t *testing.T) {
	leave := make(chan struct{})
	plugin := &recorder{runPod: func(context.Context, *api.PodSandbox) error {
		<-leave
		return errors.New("this answer is too late")
	}}
	rt := start(t, plugin, runtimetest.Options{})
	require.Equal(t, testTimeout, plugin.timeout)
	adaptation.SetPluginRequestTimeout(100 * time.Millisecond)
	_, err := rt.RunPod(within(t), somePod)
	adaptation.SetPluginRequestTimeout(testTimeout)
	require.NoError(t, err)
	require.NoError(t, rt.WaitPluginGone(within(t), pluginName))
	close(leave)
	_, ctr := runContainer(t, rt, sleeping)
	require.NoError(t, ctr.Start(within(t)))
	require.Subset(t, []string{"RunPodSandbox"}, plugin.names(), "the plugin gets no further event")
}
