package waiting

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// procRoot is a /proc made by a test.
type procRoot string

func (root procRoot) process(t *testing.T, pid, parent int, args ...string) {
	t.Helper()
	dir := filepath.Join(string(root), strconv.Itoa(pid))
	require.NoError(t, os.Mkdir(dir, 0o755))
	name := filepath.Base(args[0])
	stat := fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 9 0 7", pid, name[:min(len(name), 15)], parent) +
		strings.Repeat(" 0", 30) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cmdline"), []byte(strings.Join(args, "\x00")+"\x00"), 0o600))
}

func TestVirtualMachinesBarTheGate(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 200, 1, "/opt/kata/bin/containerd-shim-kata-v2", "-id", "vm")
	root.process(t, 300, 1, "/usr/bin/containerd-shim-runc-v2", "-id", "gpu")
	root.process(t, 301, 300, "/pause")
	root.process(t, 400, 1, "/opt/kata/bin/containerd-shim-kata-v2", "-id", "another")
	for _, c := range []struct {
		sandbox *api.PodSandbox
		want    string
	}{
		{&api.PodSandbox{Id: "unseen"}, ""},
		{&api.PodSandbox{Id: "unseen", RuntimeHandler: "runc"}, ""},
		{&api.PodSandbox{Id: "unseen", RuntimeHandler: "gvisor"}, `runtime handler "gvisor"`},
		{&api.PodSandbox{Id: "ended", Pid: 999, RuntimeHandler: "gvisor"}, `runtime handler "gvisor"`},
		{&api.PodSandbox{Id: "vm", Pid: 200}, "containerd-shim-kata-v2"},
		{&api.PodSandbox{Id: "gpu", Pid: 301, RuntimeHandler: "nvidia"}, ""},
		{&api.PodSandbox{Id: "not another's shim", Pid: 400}, ""},
	} {
		bars := (&runtime{}).bars(c.sandbox, string(root))
		assert.Contains(t, bars, c.want, c.sandbox.Id)
		assert.Equal(t, c.want == "", bars == "", c.sandbox.Id)
	}
	old := &runtime{barsGate: "too old"}
	assert.Equal(t, "too old", old.bars(&api.PodSandbox{Id: "gpu", Pid: 301}, string(root)))
}

// The shims of the others may be those of an earlier containerd.
func TestTheRuntimeMadeTheSandboxesThatAreYoungerThanItsSocket(t *testing.T) {
	t.Parallel()
	root, socket := procRoot(t.TempDir()), filepath.Join(t.TempDir(), "nri.sock")
	c := aChooser(Options{ProcRoot: string(root), NRISocket: socket})
	root.process(t, 301, 300, "/pause")
	pod := &api.PodSandbox{Id: "pod", Pid: 301}
	const booted = 1_000_000 // the process began 0.07 s later
	require.NoError(t, os.WriteFile(filepath.Join(string(root), "stat"), fmt.Appendf(nil, "btime %d\n", booted), 0o600))
	require.False(t, c.youngerThanRuntime(pod), "there is no socket")
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	require.False(t, c.youngerThanRuntime(pod), "the socket is younger")
	require.NoError(t, os.Chtimes(socket, time.Time{}, time.Unix(booted, 0)))
	require.True(t, c.youngerThanRuntime(pod))
	for _, other := range []*api.PodSandbox{{Id: "dead"}, {Id: "ended", Pid: 999}} {
		require.False(t, c.youngerThanRuntime(other), other.Id)
	}
	require.NoError(t, os.Remove(filepath.Join(string(root), "stat")))
	require.False(t, c.youngerThanRuntime(pod), "nobody knows when it began")
}

// Reading from a process that hangs may block the reader.
func TestAWaitForAShimHoldsUpNoOtherPod(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 7, 1, "/usr/bin/containerd-shim-runc-v2", "-id", "s")
	args := filepath.Join(string(root), "7", "cmdline")
	content, err := os.ReadFile(args)
	require.NoError(t, err)
	require.NoError(t, os.Remove(args))
	require.NoError(t, unix.Mkfifo(args, 0o600))
	c := aChooser(Options{ProcRoot: string(root)})
	c.Connected("containerd", "2.4.2", 0)
	made := make(chan error, 1)
	go func() { made <- c.Sandbox(t.Context(), &api.PodSandbox{Id: "s", Uid: "u", Pid: 7}) }()
	var pipe *os.File
	require.Eventually(t, func() bool {
		pipe, err = os.OpenFile(args, os.O_WRONLY|unix.O_NONBLOCK, 0) // fails until the file has a reader
		return err == nil
	}, testTimeout, time.Millisecond)

	others := make(chan struct{})
	go func() {
		defer close(others)
		c.o.Starts.InShadow()
	}()
	select {
	case <-others:
	case <-time.After(testTimeout):
		require.Fail(t, "the events of other pods wait")
	}
	_, err = pipe.Write(content)
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	require.NoError(t, <-made)
}
