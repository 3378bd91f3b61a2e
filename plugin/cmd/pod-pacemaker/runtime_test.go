package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// This test uses a real NRI runtime from end to end. systemd gets its messages, the first pod starts, the second is
// refused, and status and why say so.
func TestRunPacesAndReports(t *testing.T) {
	conn := notifySocket(t)
	dir := shortDir(t)
	rt, err := runtimetest.New(runtimetest.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, rt.Start())
	defer func() { assert.NoError(t, rt.Stop()) }()

	ctx, cancel := context.WithCancel(t.Context())
	s, config := newStage(nil), oneAtATime(t)
	s.newDaemon = realDaemon
	code := make(chan int, 1)
	go func() {
		code <- s.run(ctx, []string{
			"run", "--node-name=worker-3", "--run-dir=" + dir + "/run", "--nri-socket=" + rt.Socket(),
			"--config=" + config, "--http=", "--gate-path=", "--hold=0",
		})
	}()
	defer func() {
		cancel()
		assert.Equal(t, exitOK, <-code, s.errs.String())
	}()
	ready := told(t, conn)
	require.True(t, strings.HasPrefix(ready, "READY=1\nSTATUS="), ready)
	for !strings.HasSuffix(ready, "STATUS=ready: pods start as the configuration in force says") { // it was not ready within readyMost
		ready = told(t, conn)
	}
	require.NoError(t, rt.WaitPlugin(t.Context(), "pod-pacemaker"))

	sleep := runtimetest.ContainerSpec{Name: "app", Args: []string{"sleep", "3600"}}
	create := func(name string) error {
		pod, err := rt.RunPod(t.Context(), runtimetest.PodSpec{Namespace: "default", Name: name, UID: "uid-" + name})
		if err != nil {
			return err
		}
		_, err = pod.CreateContainer(t.Context(), sleep)
		return err
	}
	require.NoError(t, create("web-0"))
	require.ErrorContains(t, create("web-1"), "waiting to start")

	// The daemon reports an event a moment after it happened.
	why := func(pod, want string) {
		assert.EventuallyWithT(t, func(c *assert.CollectT) {
			_, line, stderr := call(t, "why", pod, "--run-dir", dir+"/run")
			assert.Regexp(c, want, line, stderr)
		}, time.Minute, 10*time.Millisecond)
	}
	why("default/web-0", `^default/web-0: starting for \S+ .*\(WithinLimits\), holds a slot\n$`)
	why("default/web-1", `^default/web-1: waiting \S+, place 1 of 1: Concurrency: 1 of 1 starting; refused, `)
	_, status, _ := call(t, "status", "--run-dir", dir+"/run")
	assert.Contains(t, status, "containerd v2.4.2, connected and synchronized\n")
	_, all, _ := call(t, "status", "--run-dir", dir+"/run", "-o", "json")
	assert.Contains(t, all, `"requestTimeoutSeconds": 2,`)
	assert.Contains(t, all, `"registrationTimeoutSeconds": 3600,`)
	assert.Contains(t, status, "STARTING 1 of 1\n")
	assert.Contains(t, status, "WAITING 1, the longest for ")
	// One more is allowed each second, so the refusal may be over on a slow machine.
	assert.Regexp(t, `refused   1 at the sandbox \(now up to (59|60) more\), 0 at the container\n`, status)
}

// oneAtATime is a configuration that admits one start at a time. Without noProgressAfter, the daemon lends no second slot
// while the first pod, which has no process, makes no progress.
func oneAtATime(t *testing.T) (path string) {
	t.Helper()
	return file(t, strings.Replace(twoAtATime, "{value: 2}", "{value: 1}\n    noProgressAfter: 0s", 1))
}
