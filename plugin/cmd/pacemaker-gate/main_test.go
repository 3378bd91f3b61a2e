package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

var program gatetest.Program

func TestMain(m *testing.M) {
	program.M = m
	goleak.VerifyTestMain(&program)
}

// hook is a running pacemaker-gate.
type hook struct{ *gatetest.Started }

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

func startHook(tb testing.TB, a hookArgs) hook {
	tb.Helper()
	return start(tb, nil, a.argv()...)
}

func start(tb testing.TB, stdin io.Reader, argv ...string) hook {
	tb.Helper()
	cmd := exec.Command(program.Path, argv...)
	cmd.Stdin = stdin
	return hook{gatetest.Start(tb, cmd)}
}

// exit waits for the end and returns the exit code and the text on stderr.
func (h hook) exit(tb testing.TB) (code int, said string) {
	tb.Helper()
	gatetest.Receive(tb, h.Ended, "the hook ends")
	return h.ProcessState.ExitCode(), h.Err.String()
}

func (h hook) running() bool {
	select {
	case <-h.Ended:
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
		assert.Equal(t, usage, h.Out.String())
	}
	h := start(t, nil, "--version")
	code, _ := h.exit(t)
	assert.Zero(t, code)
	assert.Equal(t, "pacemaker-gate v0.0.0-test\n", h.Out.String())
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
