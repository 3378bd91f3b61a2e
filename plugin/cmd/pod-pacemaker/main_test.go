package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asProgram in the environment turns the test binary into pod-pacemaker.
const asProgram = "POD_PACEMAKER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// written collects a program's output. It may be read meanwhile.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// call runs the program with the arguments until it ends.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs written
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// says runs the program, which must succeed, and returns what it wrote.
func says(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, args...)
	assert.Zero(t, code, args)
	assert.Empty(t, stderr, args)
	return stdout
}

// fails runs the program, which must end with this code, and returns what it wrote on standard error.
func fails(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, args...)
	assert.Equal(t, want, code, args)
	assert.Empty(t, stdout, args)
	return stderr
}

func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// shortDir returns a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pp")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// fixed is a daemon with fixed answers.
type fixed struct {
	status  admin.Status
	costs   admin.Costs
	unready error
	stuck   error
	off     *time.Duration // what SwitchOff was called with
	admits  bool
}

func (f *fixed) SwitchOff(span time.Duration) time.Time { *f.off = span; return at(300).Add(span) }

func (f *fixed) Admit(string) bool { return f.admits }

func (f *fixed) Status() admin.Status { return f.status }

func (f *fixed) Costs() admin.Costs { return f.costs }

func (f *fixed) Ready() error { return f.unready }

func (f *fixed) Alive(context.Context) error { return f.stuck }

// serve answers at a socket until the test ends, and returns its folder.
func serve(t *testing.T, p *fixed) (runDir string) {
	t.Helper()
	runDir = shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.ServeAdmin(ctx, rundir.Serve, adminSocket(runDir), p, p) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		_, err := admin.NewClient(adminSocket(runDir)).Status(t.Context())
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	return runDir
}
