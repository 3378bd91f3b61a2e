//go:build e2e && full

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A runtime with NRI 0.12.5 does not disconnect a plugin that asks for it when a call times out. The daemon leaves by
// itself when it is late, if it can: exempt pods start as fast as before but for two time-outs in all, while the daemon
// is stopped, and after one handler that never returns.
func TestALateDaemonLeavesARuntimeThatKeepsItConnected(t *testing.T) {
	witness := measuredNode(t, "containerd@nri0.12.5")
	ns := namespace(t)
	usual := startsFor(t, ns, weakFor/2)
	slices.Sort(usual)
	median := usual[len(usual)/2]
	judge := func(t *testing.T, what string, late func()) {
		before := waitedFor(t, witness)
		late()
		weak := startsFor(t, ns, weakFor)
		now := waitedFor(t, witness)
		vain, waited := now.vain-before.vain, now.waited-before.waited
		most := (weakRatio-1)*median.Seconds()*float64(len(weak)) + weakTimeouts*requestTimeout.Seconds()
		figure(t, "NRI 0.12.5, %s: an exempt pod runs after %.2f s at the median without a daemon; of %d the slowest took %.2f s; containerd waited %.1f s in all (bound %.1f), %v waits timed out",
			what, median.Seconds(), len(weak), slices.Max(weak).Seconds(), waited, most, vain)
		require.Positive(t, vain, "waits that timed out: without one there is nothing to check")
		require.LessOrEqual(t, vain, float64(weakTimeouts), "waits of containerd that timed out")
		require.LessOrEqual(t, waited, most, "seconds that containerd waited")
	}
	exempts := "{exemptions: {namespaces: [" + ns + "]}, throttleConfig: {maxConcurrent: {value: 2}}}"
	t.Run("stopped", func(t *testing.T) {
		d := startDaemon(t)
		d.configure(t, exempts)
		judge(t, "daemon stopped", func() { require.NoError(t, d.Signal(t.Context(), syscall.SIGSTOP)) })
		require.NoError(t, d.Signal(t.Context(), syscall.SIGCONT))
	})
	t.Run("a handler hangs", func(t *testing.T) {
		d := startProgram(t, hangingProgram(t), "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName)
		d.configure(t, exempts)
		judge(t, "one handler hangs", func() { createPod(t, namespace(t), "hangs", herdPod(0)) })
	})
}

// hangingProgram builds the daemon with a handler that never returns for a pod with the name hangs.
func hangingProgram(t *testing.T) (program string) {
	t.Helper()
	original := repository("plugin", "handlers.go")
	code, err := os.ReadFile(original)
	require.NoError(t, err)
	const before = "\th.made(pod)\n"
	require.Equal(t, 1, strings.Count(string(code), before), "%s in %s", before, original)
	dir := t.TempDir()
	changed, overlay, program := filepath.Join(dir, "handlers.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "pod-pacemaker")
	hangs := strings.Replace(string(code), before, "\tif pod.GetName() == \"hangs\" {\n\t\tselect {}\n\t}\n"+before, 1)
	require.NoError(t, os.WriteFile(changed, []byte(hangs), 0o600))
	replaces, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replaces, 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./plugin/cmd/pod-pacemaker")
	cmd.Dir, cmd.Env = repository(), append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
