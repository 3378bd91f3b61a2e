package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/waiter"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestGo(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	a := args(path)
	h := startHook(t, a)
	w := b.Next(t)
	assert.Equal(t, "u1", w.PodUID)
	assert.Equal(t, "c1", w.ContainerID)
	assert.Equal(t, "ns/p", w.Name)
	assert.WithinDuration(t, a.Since, w.Since, time.Millisecond)
	assert.WithinDuration(t, a.Deadline, w.Deadline, time.Second)
	w.SendForecast(time.Now().Add(-time.Hour), 1, 0) // this counts only without a daemon
	w.Decide(gate.Verdict{Go: true, Reason: "Admitted"})
	code, said := h.exit(t)
	assert.Zero(t, code)
	assert.Empty(t, said)
	assert.Empty(t, h.Out.String())
}

func TestGone(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	for reason, want := range map[reasons.Reason]string{
		reasons.Deleted: "Deleted: the pod was deleted while it waited for its turn to start",
		"Other: words":  "Other: words",
	} {
		h := startHook(t, args(path))
		b.Next(t).Decide(gate.Verdict{Reason: reason})
		code, said := h.exit(t)
		assert.Equal(t, 1, code)
		assert.Equal(t, "pod-pacemaker: nothing started: "+want+"\n", said)
	}
}

func TestNoDaemonUntilTheTimeToLeave(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*hookArgs, time.Time){
		"leave-at":         func(a *hookArgs, at time.Time) { a.LeaveAt = at },
		"deadline":         func(a *hookArgs, at time.Time) { a.Deadline = at },
		"no time to leave": func(a *hookArgs, _ time.Time) { a.LeaveAt = time.Time{} },
	} {
		a := args(gatetest.Socket(t))
		at := time.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
		change(&a, at)
		code, said := startHook(t, a).exit(t)
		assert.True(t, a.LeaveAt.IsZero() || !time.Now().Before(at), "%s: the hook left early", name)
		assert.Zero(t, code)
		assert.Regexp(t, "^pod-pacemaker: starts unpaced: no (daemon|decision before the deadline).*: no such file or directory\n$", said, name)
	}
}

func TestDeadlineEndsTheWaitAtADaemonThatSaysNothing(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	a := args(path)
	a.Deadline = time.Now().Add(500 * time.Millisecond).Truncate(time.Millisecond)
	h := startHook(t, a)
	w := b.Next(t)
	code, said := h.exit(t)
	assert.False(t, time.Now().Before(a.Deadline), "the hook left early")
	assert.Zero(t, code)
	assert.Equal(t, "pod-pacemaker: starts unpaced: no decision before the deadline\n", said)
	w.AwaitEnd(t)
}

func TestDaemonDiesAndComesBack(t *testing.T) {
	t.Parallel()
	first, path := gatetest.NewBackend(), gatetest.Socket(t)
	stop := gatetest.Serve(t, path, first)
	const hooks = 5
	since := map[string]time.Time{}
	running := map[string]hook{}
	for i := range hooks {
		a := args(path)
		a.LeaveAt = time.Time{} // it would leave at once if the daemon had not sent another time
		a.ContainerID = strconv.Itoa(i)
		a.Since = a.Since.Add(-time.Duration(i) * time.Minute)
		since[a.ContainerID] = a.Since
		running[a.ContainerID] = startHook(t, a)
	}
	next := tellEach(t, first, hooks)
	stop()

	// The first hook in line leaves at the time that it was told. The others stay.
	code, said := running[next].exit(t)
	assert.Zero(t, code)
	assert.Contains(t, said, "starts unpaced: no daemon at "+path)

	second := gatetest.NewBackend()
	gatetest.Serve(t, path, second)
	for range hooks - 1 {
		w := second.Next(t)
		assert.WithinDuration(t, since[w.ContainerID], w.Since, time.Millisecond, "the hook keeps its place in the queue")
		assert.True(t, running[w.ContainerID].running())
		w.Decide(gate.Verdict{Go: true})
		code, said := running[w.ContainerID].exit(t)
		assert.Zero(t, code)
		assert.Empty(t, said)
	}
}

// tellEach tells one hook a near time to leave, and all others a far one.
func tellEach(t *testing.T, b *gatetest.Backend, hooks int) (next string) {
	t.Helper()
	for i := range hooks {
		w := b.Next(t)
		leaveAt := time.Now().Add(time.Hour)
		if i == 0 {
			next, leaveAt = w.ContainerID, time.Now()
		}
		w.SendForecast(leaveAt, i, 0)
	}
	return next
}

func TestNonsenseOnStdinHasNoEffect(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	argv := args(path).argv()
	open, keep, err := os.Pipe()
	require.NoError(t, err)
	defer keep.Close()
	defer open.Close()

	for _, stdin := range []io.Reader{bytes.NewReader(make([]byte, 1<<20)), open} {
		h := start(t, stdin, argv...)
		b.Next(t).Decide(gate.Verdict{Go: true})
		code, said := h.exit(t)
		assert.Zero(t, code)
		assert.Empty(t, said)
	}
}

func TestDaemonThatTalksNonsense(t *testing.T) {
	t.Parallel()
	for name, nonsense := range map[string]string{
		"an unknown word": "stay here\n",
		"a bad forecast":  "turn on\n",
		"an endless line": strings.Repeat("x", 1<<20),
		"binary":          "\x00\xff\n",
	} {
		path := gatetest.Socket(t)
		l, err := rundir.Listen(path, 0o600)
		require.NoError(t, err)
		served := make(chan struct{})
		go func() {
			defer close(served)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(nonsense)) // the hook may close the connection meanwhile
				_ = c.Close()
			}
		}()
		a := args(path)
		a.LeaveAt = time.Now().Add(200 * time.Millisecond)
		code, said := startHook(t, a).exit(t)
		assert.Zero(t, code, name)
		assert.Contains(t, said, "starts unpaced: no daemon at", name)
		require.NoError(t, l.Close())
		<-served
	}
}

func TestSignalEndsTheHook(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	h := startHook(t, args(path))
	w := b.Next(t)
	require.NoError(t, h.Process.Signal(syscall.SIGTERM))
	gatetest.Receive(t, h.Ended, "the hook ends")
	assert.False(t, h.ProcessState.Success(), "a runtime must not start the container after this")
	w.AwaitEnd(t)
}

func TestParentDies(t *testing.T) {
	// Not parallel: meanwhile, this process is the parent of all orphans.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) }()
	b, path := gatetest.Serving(t)

	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	argv := append([]string{"-c", `"$@" & echo $!; wait`, "sh", program.Path}, args(path).argv()...)
	parent := exec.Command("sh", argv...)
	parent.Stdout = write
	var said bytes.Buffer
	stderr, err := parent.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	require.NoError(t, write.Close())
	line := make([]byte, 32)
	n, err := read.Read(line)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	require.NoError(t, err)
	w := b.Next(t)

	require.NoError(t, parent.Process.Kill())
	w.AwaitEnd(t)
	var status unix.WaitStatus
	_, err = unix.Wait4(pid, &status, 0, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, status.ExitStatus())
	_, err = said.ReadFrom(stderr)
	require.NoError(t, err)
	assert.Contains(t, said.String(), "pod-pacemaker: nothing started: "+waiter.RuntimeGone)
	_ = parent.Wait() // it was killed
}

func TestABlockedStandardErrorDoesNotHoldTheHook(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	fill(t, write)
	h := exec.Command(program.Path)
	h.Stderr = write
	require.NoError(t, h.Run())
}

// fill writes to a pipe until the pipe is full.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	raw, err := w.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		chunk := make([]byte, 4096)
		for err == nil {
			_, err = unix.Write(int(fd), chunk)
		}
	}))
	require.ErrorIs(t, err, unix.EAGAIN)
}
