package gatetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ProcNumber returns the number in the line of /proc/PID/file that begins with key.
func ProcNumber(tb testing.TB, pid int, file, key string) int64 {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	require.NoError(tb, err)
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			require.NoError(tb, err)
			return n
		}
	}
	tb.Fatalf("no %s in /proc/%d/%s", key, pid, file)
	return 0
}

// PSS returns the memory of a process in KiB. A shared page counts by its share.
func PSS(tb testing.TB, pid int) int64 {
	tb.Helper()
	return ProcNumber(tb, pid, "smaps_rollup", "Pss")
}

// CPUShare returns the CPUs that all threads of a process use on average during a time, for which it blocks.
func CPUShare(tb testing.TB, pid int, during time.Duration) float64 {
	tb.Helper()
	begin, before := time.Now(), cpuTime(tb, pid)
	time.Sleep(during)
	return (cpuTime(tb, pid) - before).Seconds() / time.Since(begin).Seconds()
}

func cpuTime(tb testing.TB, pid int) (sum time.Duration) {
	tb.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(tb, err)
	require.NotEmpty(tb, threads)
	for _, file := range threads {
		data, err := os.ReadFile(file)
		require.NoError(tb, err)
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		require.NoError(tb, err)
		sum += time.Duration(ns)
	}
	return sum
}
