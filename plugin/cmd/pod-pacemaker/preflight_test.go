package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/preflight"
)

func nriSocket(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "nri.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return path
}

func TestPreflightExitCode(t *testing.T) {
	t.Parallel()
	dir, config := shortDir(t), file(t, twoAtATime)
	args := []string{"preflight", "--node-name=worker-3", "--config=" + config, "--run-dir=" + dir, "--http=", "--gate=never", "--cni-conf-dir="}
	code, stdout, stderr := call(t, append(args, "--nri-socket="+nriSocket(t, dir))...)
	assert.Zero(t, code, stderr)
	assert.Contains(t, stdout, "pod-pacemaker dev, on worker-3:\n  ok       cores    pods can use ")
	assert.Contains(t, stdout, "\n  ok       config   "+config+`: "two-at-a-time": 2 at a time`)
	assert.Contains(t, stdout, "  warning  gate     not used: --gate never\n                    -> pods outside the waiting room are refused")
	assert.NotContains(t, stdout, "cni")

	code, stdout, stderr = call(t, append(args, "--nri-socket="+dir+"/none.sock", "-o", "json")...)
	assert.Equal(t, exitFailure, code)
	assert.Equal(t, "pod-pacemaker: 1 fault: pods are not paced as configured\n", stderr)
	var report preflight.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	assert.Equal(t, 1, report.Count(preflight.Fault))
	assert.Equal(t, "worker-3", report.Node)
}

// In a pod, preflight does not see the process of containerd.
func TestPreflightAsksTheDaemonForTheVersionOfTheRuntime(t *testing.T) {
	t.Parallel()
	dir := serve(t, &fixed{status: herd()})
	_, stdout, _ := call(t, "preflight", "--node-name=worker-3", "--run-dir="+dir, "--http=", "--gate=never", "--proc-root="+t.TempDir())
	assert.Contains(t, stdout, "ok       runtime  containerd 2.4.2 has no known fault\n")
}

// In the pod of a daemon, the daemon is the first process. Its flags count if preflight has none.
func TestPreflightInTheDaemonsPodTakesItsFlags(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	daemon := strings.Join([]string{
		"/usr/local/bin/pod-pacemaker", "run", "--config=" + file(t, twoAtATime), "--nri-socket=" + nriSocket(t, dir), "--run-dir=" + dir,
		"--gate=never", "--proc-root=" + dir, "--http=", "--kubelet-config=" + dir + "/none", "",
	}, "\x00")
	for _, c := range []struct {
		first string
		args  []string
		inPod bool
		says  []string
		not   string
	}{
		{daemon, nil, true, []string{"  ok       flags    those of the daemon in this pod\n", dir + "/nri.sock is there", "--gate never", "fault    kubelet"}, "cni"},
		{daemon, []string{"--nri-socket=" + dir + "/other.sock"}, true, []string{"there is no " + dir + "/other.sock", "--gate never"}, "cni"},
		{strings.Replace(daemon, "\x00run\x00", "\x00preflight\x00", 1), []string{"--http="}, false, []string{"/var/run/nri/nri.sock", "cni "}, dir},
		{"/sbin/init\x00run\x00", []string{"--http="}, false, []string{"/var/run/nri/nri.sock", "cni "}, dir},
		{"", []string{"--http="}, false, []string{"/var/run/nri/nri.sock", "cni "}, dir},
	} {
		s := newStage(map[string]string{"NODE_NAME": "worker-3"})
		s.firstProcess = file(t, c.first)
		s.run(t.Context(), append([]string{"preflight"}, c.args...))
		require.NotEmpty(t, s.out.String(), s.errs.String())
		assert.Equal(t, c.inPod, strings.Contains(s.out.String(), "ok       flags "), s.out.String())
		for _, says := range c.says {
			assert.Contains(t, s.out.String(), says)
		}
		assert.NotContains(t, s.out.String(), c.not)
	}
	s := newStage(nil)
	s.firstProcess = file(t, daemon)
	assert.Equal(t, []string{"status"}, s.completed([]string{"status"}), "only preflight takes the daemon's flags")
}

func TestPreflightOfAWrongConfigurationIsExitCode2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--config=" + file(t, "kind: Pod\n")}, {"--gate-timeout=-1s"}, {"--gate=perhaps"}} {
		code, stdout, stderr := call(t, append([]string{"preflight", "--http=", "--node-name=n", "--run-dir=" + t.TempDir()}, args...)...)
		assert.Equal(t, exitInvalid, code, args)
		assert.Empty(t, stdout)
		assert.NotEmpty(t, stderr)
	}
}

func TestPreflightNamesAKubeletConfigThatIsMissing(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none")
	require.NoFileExists(t, missing)
	code, stdout, _ := call(t, "preflight", "--http=", "--node-name=n", "--run-dir="+t.TempDir(), "--kubelet-config="+missing)
	assert.Equal(t, exitFailure, code)
	assert.Contains(t, stdout, "fault    kubelet")
}
