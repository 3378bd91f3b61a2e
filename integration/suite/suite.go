// Package suite holds what the suites of scenarios share: one process and one node for all
// scenarios, and their measured figures, printed at the end.
package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// ExitCode returns the exit code of a suite's process: the code that run returns, or 1 with an
// error, which it prints under the name of the suite.
func ExitCode(name string, run func() (code int, err error)) int {
	code, err := run()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return code
}

// Figures are measurements of scenarios. The zero value is empty. It is safe for concurrent use.
type Figures struct {
	mu    sync.Mutex
	lines []string
}

// Note logs a figure of a scenario and keeps it for the end.
func (f *Figures) Note(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf("%s: %s", t.Name(), fmt.Sprintf(format, args...))
	t.Log(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
}

// String returns the figures under their heading, one a line, or nothing if there are none.
func (f *Figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lines) == 0 {
		return ""
	}
	return "\nMeasured:\n  " + strings.Join(f.lines, "\n  ") + "\n"
}

// Repository returns a path inside the repository. The sources must be where they were built.
func Repository(parts ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file), "..", ".."}, parts...)...)
}
