package gatetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Program is the program in the folder of its tests. Pass it to goleak.VerifyTestMain.
type Program struct {
	*testing.M
	Path string // while the tests run
}

// Run builds the program as it ships, and runs the tests.
func (p *Program) Run() int {
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	p.Path = filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version=v0.0.0-test", "-o", p.Path, ".") //nolint:gosec // the path is the one above
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Errorf("go build: %w\n%s", err, out))
	}
	return p.M.Run()
}

// Started is a program that was started. Out and Err have what it has written once Ended is closed.
type Started struct {
	*exec.Cmd
	Out, Err bytes.Buffer
	Ended    chan struct{}
}

// Start starts a program, which is killed when tb ends.
func Start(tb testing.TB, cmd *exec.Cmd) *Started {
	tb.Helper()
	p := &Started{Cmd: cmd, Ended: make(chan struct{})}
	p.Stdout, p.Stderr = &p.Out, &p.Err
	require.NoError(tb, p.Cmd.Start())
	go func() {
		defer close(p.Ended)
		_ = p.Wait() // ProcessState says how it ended
	}()
	tb.Cleanup(func() {
		_ = p.Process.Kill() // it has ended, unless the test failed
		<-p.Ended
	})
	return p
}
