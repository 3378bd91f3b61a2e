package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// patience bounds the waits for necessary events. No result depends on its length.
const patience = time.Minute

// launchStage is a runtime that starts pod-pacemaker itself.
type launchStage struct {
	*adaptation.Adaptation
	t *testing.T
}

// newLaunchStage returns a runtime that has the plugin and its configuration in place. It gives its plugins this long
// for an answer.
func newLaunchStage(t *testing.T, config string, timeout time.Duration) *launchStage {
	t.Helper()
	adaptation.SetPluginRegistrationTimeout(patience)
	adaptation.SetPluginRequestTimeout(timeout)
	t.Cleanup(func() {
		adaptation.SetPluginRegistrationTimeout(adaptation.DefaultPluginRegistrationTimeout)
		adaptation.SetPluginRequestTimeout(adaptation.DefaultPluginRequestTimeout)
	})
	dir := shortDir(t)
	s := &launchStage{t: t}
	self, err := os.Executable()
	require.NoError(t, err)
	for name, text := range map[string]string{
		"plugins/05-pod-pacemaker":     fmt.Sprintf("#!/bin/sh\nexport %s=1\nexec %s\n", asProgram, self),
		"conf.d/05-pod-pacemaker.conf": config,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	none := func(ctx context.Context, sync adaptation.SyncCB) error {
		_, err := sync(ctx, nil, nil)
		return err
	}
	update := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, nil
	}
	s.Adaptation, err = adaptation.New("containerd", "v2.4.2", none, update,
		adaptation.WithPluginPath(filepath.Join(dir, "plugins")), adaptation.WithPluginConfigPath(filepath.Join(dir, "conf.d")),
		adaptation.WithSocketPath(filepath.Join(dir, "nri.sock")))
	require.NoError(t, err)
	require.NoError(t, s.Start())
	t.Cleanup(s.Stop)
	return s
}

// creates asks for a pod with a container.
func (s *launchStage) creates(name string) error {
	pod := &adaptation.PodSandbox{Id: name, Uid: name, Name: name, Namespace: "default"}
	if err := s.RunPodSandbox(s.t.Context(), &adaptation.RunPodSandboxRequest{Pod: pod}); err != nil {
		return err
	}
	_, err := s.CreateContainer(s.t.Context(), &adaptation.CreateContainerRequest{
		Pod: pod, Container: &adaptation.Container{Id: "c-" + name, PodSandboxId: name, Name: "app"},
	})
	return err
}

// hearNRI returns NRI's log from now on until the test ends. NRI has one log for the process, and package runtimetest
// gives it to the runtime that started last.
func hearNRI(t *testing.T) *written {
	t.Helper()
	said := &written{}
	log := logrus.New()
	log.SetOutput(said)
	rt, err := runtimetest.New(runtimetest.Options{Dir: shortDir(t), Log: log})
	require.NoError(t, err)
	require.NoError(t, rt.Start())
	t.Cleanup(func() { require.NoError(t, rt.Stop()) })
	return said
}

// oneAtATime is a configuration that admits one start at a time. Without noProgressAfter, the daemon lends no second slot
// while the first pod, which has no process, makes no progress.
func oneAtATime(t *testing.T) (path string) {
	t.Helper()
	return file(t, strings.Replace(twoAtATime, "{value: 2}", "{value: 1}\n    noProgressAfter: 0s", 1))
}

// launchSettings are the settings of a daemon that uses only one folder and admits one start at a time.
func launchSettings(t *testing.T, dir string) string {
	t.Helper()
	return fmt.Sprintf("config: %s\nrun-dir: %s/run\nstate-dir: ''\nhttp: ''\ngate-path: ''\nhold: 0s\nlog-format: text\n", oneAtATime(t), dir)
}

// The runtime starts the daemon, and the limit is in force before it serves the first pod. The first pod is counted,
// and the second is refused. When the runtime ends, the daemon ends.
func TestARuntimeThatStartsTheDaemonIsPacedFromTheFirstPodOn(t *testing.T) {
	hearNRI(t)
	dir := shortDir(t)
	s := newLaunchStage(t, launchSettings(t, dir), patience)
	require.NoError(t, s.creates("web-0"))
	require.ErrorContains(t, s.creates("web-1"), "Concurrency")
	client := admin.NewClient(adminSocket(dir + "/run"))
	status, err := client.Status(t.Context())
	require.NoError(t, err)
	assert.True(t, status.Ready, status.NotReady)
	assert.Equal(t, "v2.4.2", status.Runtime.Version)
	assert.Len(t, status.Starting, 1)

	s.Stop()
	require.Eventually(t, func() bool {
		_, err := client.Status(t.Context())
		return err != nil
	}, time.Minute, 10*time.Millisecond, "the daemon ends with the runtime")
}

// A daemon that gets a signal leaves the runtime, which then starts pods unpaced.
func TestAPreRegisteredDaemonThatIsToEndLeavesTheRuntime(t *testing.T) {
	hearNRI(t)
	dir := shortDir(t)
	s := newLaunchStage(t, launchSettings(t, dir), patience)
	require.NoError(t, s.creates("web-0"))
	require.ErrorContains(t, s.creates("web-1"), "Concurrency")
	said, err := os.ReadFile(dir + "/run/lock")
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(string(said), "process %d,", &pid)
	require.NoError(t, err, "%s", said)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	require.Eventually(t, func() bool { return s.creates("web-2") == nil }, patience, 10*time.Millisecond, "pods start unpaced")
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, patience, 10*time.Millisecond, "the process ends")
}

// A fault in the configuration is reported to the runtime, which continues without the daemon.
func TestARuntimeGetsTheFaultsOfTheConfiguration(t *testing.T) {
	said := hearNRI(t)
	s := newLaunchStage(t, "node-nam: worker-3\ngate: perhaps\nnri-socket: /x\nhold: [1s]\n", patience)
	require.NoError(t, s.creates("web-0"))
	require.NoError(t, s.creates("web-1"), "pods start unpaced")
	for _, want := range []string{
		"gate: invalid argument", "hold: must be a string, a number, true or false", "node-nam: unknown setting", "nri-socket: unknown setting",
	} {
		assert.Contains(t, said.String(), preRegisteredConfig+": "+want)
	}
}

// Another daemon paces the node. The runtime gets an error within the time that it gives its plugins, and continues.
func TestAPreRegisteredDaemonThatWouldStandByLeavesTheRuntimeAlone(t *testing.T) {
	said := hearNRI(t)
	dir := shortDir(t)
	first := newLaunchStage(t, launchSettings(t, dir), patience)
	require.NoError(t, first.creates("web-0"))
	begin := time.Now()
	second := newLaunchStage(t, launchSettings(t, dir), 16*time.Second)
	assert.Less(t, time.Since(begin), patience)
	require.NoError(t, second.creates("web-1"))
	assert.Contains(t, said.String(), "the daemon could not pace pods within 12s: another daemon paces the pods of this node (process ")
	require.ErrorContains(t, first.creates("web-2"), "Concurrency", "the first daemon still paces")
}

func TestSettingsOfAPreRegisteredDaemonAreFlags(t *testing.T) {
	t.Parallel()
	p := newStage(nil)
	f, err := preRegisteredFlags("node-name: worker-3\nkubeconfig: /k\ngate-timeout: 2m\nrefuse-at: container\nnri-index: '07'\n", p.env)
	require.ErrorContains(t, err, "nri-index")
	require.Nil(t, f)
	f, err = preRegisteredFlags("node-name: worker-3\nkubeconfig: /k\ngate-timeout: 2m\nrefuse-at: container\nlog-level: debug\n", p.env)
	require.NoError(t, err)
	assert.Equal(t, "worker-3", f.NodeName)
	assert.Equal(t, 2*time.Minute, f.GateTimeout)
	assert.Equal(t, waiting.RefuseContainer, f.RefuseAt)
	assert.Equal(t, "debug", f.log.level)
	f, err = preRegisteredFlags("", p.env)
	require.NoError(t, err, "the defaults are a standalone daemon")
	assert.True(t, f.Standalone())
	host, err := os.Hostname()
	require.NoError(t, err)
	f, err = preRegisteredFlags("kubeconfig: /k\n", p.env)
	require.NoError(t, err)
	assert.Equal(t, strings.ToLower(host), f.NodeName)
	for text, want := range map[string]string{
		"- a\n":                "must be YAML that maps flags of `run` to values",
		"hold: 1s\nhold: 2s\n": "hold",
		"hold: 2s\n":           "--hold: 2s: must be from 0s to 1s",
	} {
		_, err := preRegisteredFlags(text, p.env)
		require.ErrorContains(t, err, want, text)
	}
}

// The runtime does not start if there is a program beside its plugins whose name is none of a plugin. So the daemon does
// not look for its other programs there.
func TestNoOtherProgramStandsBesideThePlugins(t *testing.T) {
	dir := shortDir(t)
	for _, name := range []string{"05-pod-pacemaker", "pacemaker-cni"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o700))
	}
	runtime, err := adaptation.New("containerd", "v2.4.2",
		func(context.Context, adaptation.SyncCB) error { return nil },
		func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
			return nil, nil
		},
		adaptation.WithPluginPath(dir), adaptation.WithPluginConfigPath(dir), adaptation.WithSocketPath(filepath.Join(dir, "nri.sock")))
	require.NoError(t, err)
	require.ErrorContains(t, runtime.Start(), "invalid plugin")
	for text, want := range map[string]string{
		"cni: true\n": "/opt/pod-pacemaker/bin", "gate-path: /x/pacemaker-gate\n": "/x", "gate-path: ''\n": "/opt/pod-pacemaker/bin",
	} {
		f, err := preRegisteredFlags(text, newStage(nil).env)
		require.NoError(t, err)
		assert.Equal(t, want, f.Programs, text)
	}
}

func TestAnEnvironmentThatNoRuntimeSetsIsRefused(t *testing.T) {
	t.Parallel()
	for _, fd := range []string{"x", "1", "-1"} {
		s := newStage(map[string]string{"NRI_PLUGIN_SOCKET": fd})
		assert.Equal(t, exitFailure, s.run(t.Context(), nil))
		assert.Contains(t, s.errs.String(), "env NRI_PLUGIN_SOCKET: \""+fd+"\": must be the number of the open file")
	}
}

func TestTheShippedSettingsAreValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../deploy/containerd/05-pod-pacemaker.conf")
	require.NoError(t, err)
	uncommented := strings.NewReplacer("#kubeconfig", "kubeconfig", "#node-name", "node-name").Replace(string(text))
	require.NotEqual(t, string(text), uncommented)
	p := newStage(nil)
	f, err := preRegisteredFlags(string(text), p.env)
	require.NoError(t, err)
	assert.Equal(t, "/etc/pod-pacemaker/config.yaml", f.ConfigFile)
	assert.True(t, f.Standalone())
	f, err = preRegisteredFlags(uncommented, p.env)
	require.NoError(t, err)
	assert.Equal(t, "worker-3", f.NodeName)
	assert.False(t, f.Standalone())
	for _, name := range notPreRegistered[:3] {
		assert.Contains(t, string(text), name)
	}
}
