package plugin

import (
	"fmt"
	"net"
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

func (root procRoot) process(t *testing.T, pid, parent int, started uint64, args ...string) {
	t.Helper()
	dir := filepath.Join(string(root), strconv.Itoa(pid))
	require.NoError(t, os.Mkdir(dir, 0o755))
	name := filepath.Base(args[0])
	stat := fmt.Sprintf("%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 9 0 %d", pid, name[:min(len(name), 15)], parent, started) +
		strings.Repeat(" 0", 30) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "comm"), []byte(name[:min(len(name), 15)]+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cmdline"), []byte(strings.Join(args, "\x00")+"\x00"), 0o600))
}

func TestTheAgeOfAShimTellsByWhichRuntimeTheSandboxWasMade(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	const runtimeStarted = 5000
	root.process(t, 100, 1, runtimeStarted, "/usr/bin/containerd")
	root.process(t, 200, 1, runtimeStarted+1, "/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "young")
	root.process(t, 201, 200, runtimeStarted+2, "/pause")
	root.process(t, 300, 1, runtimeStarted-1, "/usr/bin/containerd-shim-runc-v2", "-id", "survivor")
	root.process(t, 301, 300, runtimeStarted-1, "/pause")
	root.process(t, 400, 1, runtimeStarted+9, "/usr/bin/containerd-shim-runc-v2", "-id", "another")
	root.process(t, 401, 400, runtimeStarted+9, "/bin/reused-number")
	sandboxes := []*api.PodSandbox{
		{Id: "young", Pid: 201}, {Id: "survivor", Pid: 301}, {Id: "mistaken", Pid: 401},
		{Id: "ended", Pid: 999}, {Id: "untold"}, {Id: "seen"},
	}
	b := newSandboxBook(string(root))
	runtime := runtimeProcess(string(root), &net.TCPConn{})
	require.Equal(t, processOfNode{pid: 100, name: "containerd", started: runtimeStarted}, runtime)
	b.connected(true, runtime)
	b.made(sandboxes[5])
	b.exist(sandboxes)
	old := map[string]bool{}
	for _, s := range sandboxes {
		old[s.Id] = b.of(s).old
	}
	assert.Equal(t, map[string]bool{
		"young": false, "survivor": true, "mistaken": true, "ended": true, "untold": true, "seen": false,
	}, old)
	assert.True(t, b.of(&api.PodSandbox{Id: "never told of"}).old)

	// The runtime is restarted: what was seen stays known.
	b.connected(true, processOfNode{pid: 101, started: runtimeStarted + 100})
	b.exist(sandboxes)
	assert.False(t, b.of(sandboxes[0]).old)
	b.removed("young")
	assert.True(t, b.of(sandboxes[0]).old)
	b.exist(nil)
	assert.Empty(t, b.known, "what is gone is forgotten")
}

func TestSandboxesOfAnOldRuntimeStayOldAfterItsUpgrade(t *testing.T) {
	t.Parallel()
	b := newSandboxBook(t.TempDir())
	s := &api.PodSandbox{Id: "s"}
	b.connected(false, processOfNode{})
	b.made(s)
	b.connected(true, processOfNode{})
	b.exist([]*api.PodSandbox{s})
	assert.True(t, b.of(s).old)
}

func TestWithoutTheRuntimesProcessNoShimCountsAsYoung(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 100, 1, 1, "containerd")
	root.process(t, 101, 1, 2, "containerd") // of another one on the node
	root.process(t, 200, 1, 9, "containerd-shim-runc-v2", "-id", "s")
	runtime := runtimeProcess(string(root), &net.TCPConn{})
	assert.Zero(t, runtime)
	b := newSandboxBook(string(root))
	b.connected(true, runtime)
	s := &api.PodSandbox{Id: "s", Pid: 200}
	b.exist([]*api.PodSandbox{s})
	assert.True(t, b.of(s).old)
}

func TestVirtualMachinesAreStrange(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 200, 1, 9, "/opt/kata/bin/containerd-shim-kata-v2", "-id", "vm")
	root.process(t, 300, 1, 9, "/usr/bin/containerd-shim-runc-v2", "-id", "gpu")
	b := newSandboxBook(string(root))
	b.connected(true, processOfNode{})
	for handler, want := range map[string]string{"": "", "runc": "", "gvisor": `runtime handler "gvisor"`} {
		s := &api.PodSandbox{Id: "unseen", RuntimeHandler: handler}
		b.made(s)
		if want == "" {
			assert.Empty(t, b.of(s).strange)
		} else {
			assert.Contains(t, b.of(s).strange, want)
		}
	}
	vm := &api.PodSandbox{Id: "vm", Pid: 200}
	b.made(vm)
	assert.Contains(t, b.of(vm).strange, "containerd-shim-kata-v2", "whatever its handler is called")
	gpu := &api.PodSandbox{Id: "gpu", Pid: 300, RuntimeHandler: "nvidia"}
	b.made(gpu)
	assert.Empty(t, b.of(gpu).strange)
}

func TestTheListenerIsTheRuntime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	defer l.Close()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	assert.Equal(t, os.Getpid(), runtimeProcess("/proc", conn).pid)
}

func TestASandboxThatIsMadeWhileTheOthersAreLookedAtIsKnown(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 100, 1, 1, "/usr/bin/containerd-shim-runc-v2", "-id", "slow")
	stat := filepath.Join(string(root), "100", "stat")
	require.NoError(t, os.Remove(stat))
	require.NoError(t, unix.Mkfifo(stat, 0o600))
	b := newSandboxBook(string(root))
	b.connected(true, processOfNode{pid: 1})
	b.made(&api.PodSandbox{Id: "gone"})

	done := make(chan struct{})
	go func() {
		defer close(done)
		b.exist([]*api.PodSandbox{{Id: "slow", Pid: 100}})
	}()
	pipe, err := os.OpenFile(stat, os.O_WRONLY, 0) // once exist reads it
	require.NoError(t, err)
	made := &api.PodSandbox{Id: "made meanwhile"}
	b.made(made)
	require.NoError(t, pipe.Close())
	<-done
	assert.False(t, b.of(made).old)
	assert.NotContains(t, b.known, "gone")
}

// A process that hangs may hold up whoever reads of it.
func TestWhoeverWaitsToSeeAShimHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	root := procRoot(t.TempDir())
	root.process(t, 7, 1, 1, "/usr/bin/containerd-shim-runc-v2", "-id", "s")
	stat := filepath.Join(string(root), "7", "stat")
	content, err := os.ReadFile(stat)
	require.NoError(t, err)
	require.NoError(t, os.Remove(stat))
	require.NoError(t, unix.Mkfifo(stat, 0o600))
	p := newPacer(Options{ProcRoot: string(root), Log: discard()}, nil, newMetrics())
	made := make(chan error, 1)
	go func() { made <- p.runSandbox(t.Context(), &api.PodSandbox{Id: "s", Uid: "u", Pid: 7}) }()
	var pipe *os.File
	require.Eventually(t, func() bool {
		pipe, err = os.OpenFile(stat, os.O_WRONLY|unix.O_NONBLOCK, 0) // fails while nobody reads
		return err == nil
	}, patience, time.Millisecond)

	others := make(chan struct{})
	go func() {
		defer close(others)
		p.knowsContainer("u", "c")
	}()
	select {
	case <-others:
	case <-time.After(patience):
		require.Fail(t, "what is told of other pods waits")
	}
	_, err = pipe.Write(content)
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	require.NoError(t, <-made)
	assert.Empty(t, p.gate.sandboxes.of(&api.PodSandbox{Id: "s"}).strange)
}
