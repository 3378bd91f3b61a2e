package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// hookPath is the real hook, built once for all tests.
var hookPath string

func TestMain(m *testing.M) {
	code, err := withHook(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withHook(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "hook")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	hookPath = filepath.Join(dir, "pacemaker-gate")
	build := exec.Command("go", "build", "-o", hookPath, "./cmd/pacemaker-gate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build of the hook: %w\n%s", err, out)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			return 0, err
		}
	}
	return code, nil
}
