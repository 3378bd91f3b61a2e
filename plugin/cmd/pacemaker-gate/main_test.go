package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// binary is the program as it ships.
var binary string

func TestMain(m *testing.M) { goleak.VerifyTestMain(withBinary{m}) }

// withBinary builds the program before the tests run.
type withBinary struct{ *testing.M }

func (m withBinary) Run() int {
	dir, err := os.MkdirTemp("", "pacemaker-gate")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pacemaker-gate")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version=v0.0.0-test", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Errorf("go build: %w\n%s", err, out))
	}
	return m.M.Run()
}

// hook is a running pacemaker-gate.
type hook struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan struct{}
}

// hookArgs are the arguments of a hook.
type hookArgs struct {
	Socket string
	wire.Hello
	LeaveAt time.Time
}

// args are the arguments of a hook that waits at path for longer than any test takes.
func args(path string) hookArgs {
	now := time.Now()
	return hookArgs{
		Socket: path, LeaveAt: now.Add(time.Hour),
		Hello: wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: now, Deadline: now.Add(time.Hour)},
	}
}

func (a hookArgs) argv() []string {
	return wire.Argv(a.Socket, a.Hello, wire.Answer{Kind: wire.Forecast, LeaveAt: a.LeaveAt}, "")
}

func startHook(tb testing.TB, a hookArgs) *hook {
	tb.Helper()
	return start(tb, nil, a.argv()...)
}

func start(tb testing.TB, stdin io.Reader, argv ...string) *hook {
	tb.Helper()
	h := &hook{Cmd: exec.Command(binary, argv...), ended: make(chan struct{})}
	h.Stdin, h.Stdout, h.Stderr = stdin, &h.stdout, &h.stderr
	require.NoError(tb, h.Start())
	go func() {
		defer close(h.ended)
		_ = h.Wait() // ProcessState says how it ended
	}()
	tb.Cleanup(func() {
		_ = h.Process.Kill() // it has ended, unless the test failed
		<-h.ended
	})
	return h
}

// exit waits for the end and returns the exit code and the text on stderr.
func (h *hook) exit(tb testing.TB) (code int, said string) {
	tb.Helper()
	gatetest.Receive(tb, h.ended, "the hook ends")
	return h.ProcessState.ExitCode(), h.stderr.String()
}

func (h *hook) running() bool {
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "-h"} {
		h := start(t, nil, flag)
		code, said := h.exit(t)
		assert.Zero(t, code)
		assert.Empty(t, said)
		assert.Equal(t, usage, h.stdout.String())
	}
	h := start(t, nil, "--version")
	code, _ := h.exit(t)
	assert.Zero(t, code)
	assert.Equal(t, "pacemaker-gate v0.0.0-test\n", h.stdout.String())
}

func TestStartedByHand(t *testing.T) {
	t.Parallel()
	code, said := start(t, nil).exit(t)
	assert.Zero(t, code)
	assert.Equal(t, usage, said)
}

func TestWrongArgumentsFailOpen(t *testing.T) {
	t.Parallel()
	const hello, turn = "wait 1 pod=u1 container=c1", "turn 1 1"
	for _, tt := range []struct {
		says string
		argv []string
	}{
		{"deadline", []string{"/nowhere", hello + " deadline=soon", turn, ""}},
		{"3 arguments", []string{"/nowhere", hello, turn}},
		{"not a hello", strings.Fields("--socket /nowhere --pod u1 --container c1 --name ns/p")},
	} {
		code, said := start(t, nil, tt.argv...).exit(t)
		assert.Zero(t, code, "%q", tt.argv)
		assert.Regexp(t, `^pod-pacemaker: starts unpaced: wrong arguments: malformed: .*\n$`, said)
		assert.Contains(t, said, tt.says)
	}
}
