//go:build e2e

package keeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStopLeavesNothing starts processes that are hard to end, and takes the run down.
func TestStopLeavesNothing(t *testing.T) {
	k := launch(t)
	require.NoError(t, k.Stop(t.Context()))
	requireNothingLeft(t, k.Run)
}

// TestOwnerKilled kills the process that began the run.
func TestOwnerKilled(t *testing.T) {
	owner, run := startOwner(t)
	require.NoError(t, owner.Process.Kill())
	requireNothingLeft(t, run)
}

// TestKeeperKilled kills owner and keeper. Sweep must find the rest.
func TestKeeperKilled(t *testing.T) {
	owner, run := startOwner(t)
	k, err := Dial(t.Context(), run)
	require.NoError(t, err)
	shell, err := k.Start(t.Context(), StartArgs{Args: []string{"/bin/sh", "-c", "echo $PPID"}, Log: run.LogDir() + "/ppid"})
	require.NoError(t, err)
	_, err = k.Wait(t.Context(), shell)
	require.NoError(t, err)
	text, err := os.ReadFile(run.LogDir() + "/ppid")
	require.NoError(t, err)
	require.NoError(t, exec.Command("kill", "-9", strings.TrimSpace(string(text))).Run())
	require.NoError(t, owner.Process.Kill())
	require.Eventually(t, func() bool { alive, err := run.Alive(); return err == nil && !alive }, time.Minute, 10*time.Millisecond)
	left, err := Remains(run)
	require.NoError(t, err)
	require.NotEmpty(t, left, "the run's processes should have outlived their keeper")

	swept, err := Sweep(t.Context(), filepath.Dir(run.Dir))
	require.NoError(t, err)
	require.Contains(t, swept, run)
	requireNothingLeft(t, run)
}

// TestOwnerProcess is not a test: startOwner runs it as a process to be killed.
func TestOwnerProcess(t *testing.T) {
	if os.Getenv("POD_PACEMAKER_TEST_OWNER") == "" {
		return
	}
	k := launch(t)
	_, err := os.Stdout.WriteString("run=" + k.Run.Dir + "\n")
	require.NoError(t, err)
	select {}
}

func startOwner(t *testing.T) (*exec.Cmd, Run) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestOwnerProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "POD_PACEMAKER_TEST_OWNER=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	text := ""
	buffer := make([]byte, 4096)
	for !strings.Contains(text, "run=") || !strings.HasSuffix(text, "\n") {
		n, err := out.Read(buffer)
		require.NoError(t, err, text)
		text += string(buffer[:n])
	}
	_, dir, _ := strings.Cut(strings.TrimSpace(text), "run=")
	run, err := runAt(dir)
	require.NoError(t, err)
	return cmd, run
}

// launch begins a run with a daemon that left its parent, a process that ignores signals, a process
// with its own mount, and a process with its own cgroup.
func launch(t *testing.T) *Keeper {
	t.Helper()
	k, err := Launch(t.Context(), os.TempDir())
	require.NoError(t, err)
	for name, script := range map[string]string{
		"daemon":    "(setsid sleep 1000 &) ; sleep 1000",
		"stubborn":  "trap '' TERM INT HUP; while :; do sleep 1; done",
		"mount":     "mkdir -p " + k.Run.Dir + "/m && mount -t tmpfs none " + k.Run.Dir + "/m && touch " + k.Run.Dir + "/m/f; sleep 1000",
		"cgroup":    "d=" + pids(t) + k.Run.Cgroup + "/pods/a; mkdir -p $d && echo 0 > $d/cgroup.procs && sleep 1000",
		"elsewhere": "unshare -m sleep 1000",
	} {
		_, err := k.Start(t.Context(), StartArgs{Args: []string{"/bin/sh", "-c", script}, Log: k.Run.LogDir() + "/" + name})
		require.NoError(t, err)
	}
	return k
}

// pids returns the mount point of the hierarchy by which processes are found.
func pids(t *testing.T) string {
	t.Helper()
	all, err := hierarchies()
	require.NoError(t, err)
	for _, h := range all {
		if slices.Contains(h.controllers, "pids") {
			return h.mount
		}
	}
	require.FailNow(t, "there is no pids controller")
	return ""
}

func requireNothingLeft(t *testing.T, run Run) {
	t.Helper()
	var left []string
	require.Eventually(t, func() bool {
		var err error
		left, err = Remains(run)
		require.NoError(t, err)
		return len(left) == 0
	}, 2*time.Minute, 20*time.Millisecond, "%v", &left)
}
