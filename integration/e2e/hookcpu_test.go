//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
)

// Bounds of the CPU use of a hook and its runc: to come up, and as a part of the time that they
// wait.
const (
	hookComesUp = 200 * time.Millisecond
	hookWaits   = 0.001
)

// assertHooksSleep checks the CPU use of each waiting hook and of its runc since they began. It
// returns the number of hooks.
func assertHooksSleep(t *testing.T) (hooks int) {
	t.Helper()
	var most, longest time.Duration
	for pid, line := range hookProcesses(t) {
		used, age, err := useOf(pid)
		if err != nil {
			continue // the process has ended
		}
		if strings.Contains(line, "pacemaker-gate ") {
			hooks++
		}
		most, longest = max(most, used), max(longest, age)
		assert.Less(t, used, hookComesUp+time.Duration(hookWaits*float64(age)), "CPU time, %s after it began, of: %s", age, line)
	}
	figure(t, "%d hooks and their runcs used at most %d ms of CPU each, in up to %.0f s", hooks, most.Milliseconds(), longest.Seconds())
	return hooks
}

// useOf returns the CPU time of a process and its age.
func useOf(pid int) (used, age time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, 0, err
		}
		used += time.Duration(ns)
	}
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, 0, err
	}
	began, err := stat.StartTime()
	return used, time.Since(time.Unix(0, int64(began*float64(time.Second)))), err
}
