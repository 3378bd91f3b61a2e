package runtimetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// shell returns a hook that runs a shell script with arguments. The script must work without PATH: hooks have only
// their own environment. It is no file: the kernel refuses to execute one ("text file busy") while a process that
// another test starts has it open, from its fork to its exec.
func shell(script string, args ...string) *api.Hook {
	return &api.Hook{Path: "/bin/sh", Args: append([]string{"sh", "-c", script, "hook"}, args...)}
}

// hooked is a plugin that adds the hooks to every container.
func hooked(hooks ...*api.Hook) *recorder {
	return &recorder{create: func(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, error) {
		a := &api.ContainerAdjustment{}
		a.AddHooks(&api.Hooks{CreateRuntime: hooks})
		return a, nil
	}}
}

// waitingHook is a hook that waits until the test ends it.
type waitingHook struct{ dir string }

func newWaitingHook(t *testing.T) waitingHook {
	t.Helper()
	w := waitingHook{dir: t.TempDir()}
	require.NoError(t, syscall.Mkfifo(filepath.Join(w.dir, "go"), 0o600))
	return w
}

func (w waitingHook) hook() *api.Hook {
	return shell(`echo "$PPID $$" > "$1/pids"; read -r code < "$1/go"; exit "$code"`, w.dir)
}

// awaitWaiting waits until the hook waits, and returns its parent's and its own pid.
func (w waitingHook) awaitWaiting(t *testing.T) (parent, own int) {
	t.Helper()
	require.Eventually(t, func() bool {
		pids, err := os.ReadFile(filepath.Join(w.dir, "pids"))
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(pids), &parent, &own)
		return err == nil
	}, testTimeout, tick)
	return parent, own
}

// end lets the hook end with that code.
func (w waitingHook) end(t *testing.T, code int) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "go"), []byte(strconv.Itoa(code)+"\n"), 0))
}

func TestHookRunsBeforeTheContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := shell(`read -r state; echo "$state" > "$1/state"; echo "$WORD" > "$1/word"; pwd > "$1/pwd"`, dir)
	first.Env = []string{"WORD=ours"}
	plugin := hooked(first, shell(`[ -s "$1/word" ]`, dir))
	rt := start(t, plugin, runtimetest.Options{})
	_, ctr := runContainer(t, rt, sleeping)
	require.NoError(t, ctr.Start(within(t)))

	var state specs.State
	text, err := os.ReadFile(filepath.Join(dir, "state"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	require.Equal(t, specs.StateCreating, state.Status)
	require.Equal(t, ctr.ID(), state.ID)
	word, err := os.ReadFile(filepath.Join(dir, "word"))
	require.NoError(t, err)
	require.Equal(t, "ours\n", string(word))
	pwd, err := os.ReadFile(filepath.Join(dir, "pwd"))
	require.NoError(t, err)
	require.Equal(t, state.Bundle, strings.TrimSpace(string(pwd)))
	require.Zero(t, rt.Hooks())
}

func TestFailingHookFailsTheStartWithoutEvents(t *testing.T) {
	t.Parallel()
	ran := filepath.Join(t.TempDir(), "ran")
	plugin := hooked(shell(`echo the reason >&2; exit 7`), shell(`echo > "$1"`, ran))
	rt := start(t, plugin, runtimetest.Options{})
	_, ctr := runContainer(t, rt, sleeping)
	plugin.clear()
	err := ctr.Start(within(t))
	require.ErrorContains(t, err, "the reason")
	require.ErrorContains(t, err, "exit status 7")
	require.Empty(t, plugin.names())
	require.NoFileExists(t, ran)
	status := ctr.Status()
	require.Equal(t, runtimetest.Exited, status.State)
	require.Equal(t, 128, status.ExitCode)
	require.Zero(t, rt.Hooks())
	require.NoError(t, ctr.Remove(within(t)))
	require.Equal(t, []string{"StopContainer", "RemoveContainer"}, plugin.names())
}

func TestWaitingHookBlocksNoOtherRequest(t *testing.T) {
	t.Parallel()
	wait := newWaitingHook(t)
	plugin := hooked(wait.hook())
	rt := start(t, plugin, runtimetest.Options{})
	_, ctr := runContainer(t, rt, sleeping)
	started := make(chan error, 1)
	go func() { started <- ctr.Start(within(t)) }()
	wait.awaitWaiting(t)
	require.Equal(t, 1, rt.Hooks())
	require.Equal(t, runtimetest.Created, ctr.Status().State)

	// Other requests continue, and plugins can synchronise. They see the container as created.
	_, err := rt.RunPod(within(t), runtimetest.PodSpec{Namespace: "default", Name: "other"})
	require.NoError(t, err)
	second := &recorder{name: "second"}
	second.connect(t, rt)
	require.Equal(t, [][]string{{"web", "other", "app:CREATED"}}, second.syncs())

	// A stop only sends its event, and a removal is refused.
	plugin.clear()
	require.NoError(t, ctr.Stop(within(t), 0))
	require.Equal(t, []string{"StopContainer"}, plugin.names())
	require.ErrorContains(t, ctr.Remove(within(t)), "starting state")
	require.Equal(t, runtimetest.Created, ctr.Status().State)

	wait.end(t, 0)
	require.NoError(t, <-started)
	require.Equal(t, runtimetest.Running, ctr.Status().State)
	require.Equal(t, []string{"StopContainer", "PostStartContainer"}, plugin.names())
}

func TestEndedRequestLeavesTheHookAnOrphan(t *testing.T) {
	t.Parallel()
	wait := newWaitingHook(t)
	plugin := hooked(wait.hook())
	rt := start(t, plugin, runtimetest.Options{})
	_, ctr := runContainer(t, rt, sleeping)
	plugin.clear()
	ctx, cancel := context.WithCancel(within(t))
	started := make(chan error, 1)
	go func() { started <- ctr.Start(ctx) }()
	runc, hook := wait.awaitWaiting(t)
	require.Equal(t, runc, parentOf(t, hook))
	cancel()
	require.ErrorIs(t, <-started, context.Canceled)
	require.Equal(t, runtimetest.Exited, ctr.Status().State)
	require.Empty(t, plugin.names())
	require.Eventually(t, func() bool { return parentOf(t, hook) != runc }, testTimeout, tick)
	require.Equal(t, 1, rt.Hooks())
	require.NoError(t, rt.Stop())
	require.Zero(t, rt.Hooks())
	require.ErrorIs(t, syscall.Kill(runc, 0), syscall.ESRCH)
}

// parentOf is the parent's pid of a living process.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	return parent
}

func TestRejectedHooks(t *testing.T) {
	t.Parallel()
	plugin := hooked(shell("exit 0"))
	rt := start(t, plugin, runtimetest.Options{RejectHooks: true})
	pod, err := rt.RunPod(within(t), somePod)
	require.NoError(t, err)
	_, err = pod.CreateContainer(within(t), sleeping)
	require.ErrorContains(t, err, "OCI hook")
	require.Equal(t, []string{"RunPodSandbox", "CreateContainer", "StopContainer", "RemoveContainer"}, plugin.names())
}
