package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

// pssKiB is the memory of the process. A shared page counts by its share.
func pssKiB(tb testing.TB, pid int) int64 {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	require.NoError(tb, err)
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "Pss:"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			require.NoError(tb, err)
			return n
		}
	}
	tb.Fatal("no Pss")
	return 0
}

// cpuTime is the CPU time that all threads of the process have used.
func cpuTime(tb testing.TB, pid int) (sum time.Duration) {
	tb.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(tb, err)
		ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		require.NoError(tb, err)
		sum += time.Duration(ns)
	}
	return sum
}

// waiting starts pods that wait at b.
func waiting(tb testing.TB, b *gatetest.Backend, path string, pods int) []*plugin {
	tb.Helper()
	all := make([]*plugin, pods)
	for i := range all {
		all[i] = call(tb, room(tb, path))
	}
	for range all {
		b.Next(tb).SendForecast(time.Now().Add(time.Hour), 1, 0)
	}
	return all
}

func TestAWaitingPluginIsSmallAndSleeps(t *testing.T) {
	t.Parallel()
	const waits, most = 3 * time.Second, 0.005
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	gatetest.Serve(t, path, b)
	pid := waiting(t, b, path, 1)[0].Process.Pid
	begin, before := time.Now(), cpuTime(t, pid)
	time.Sleep(waits)
	used, took := cpuTime(t, pid)-before, time.Since(begin)
	t.Logf("%d KiB, %.5f CPUs", pssKiB(t, pid), used.Seconds()/took.Seconds())
	assert.Less(t, used.Seconds()/took.Seconds(), most, "CPUs: %s in %s", used, took)
	// The kernel maps some pages around each used page, as many as are cached: seven runs took 2016 to 2100 KiB.
	assert.LessOrEqual(t, pssKiB(t, pid), int64(2200))
}

func BenchmarkWaitingPSS(b *testing.B) {
	for _, pods := range []int{1, 20} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			var total int64
			rounds := 0
			for b.Loop() {
				backend, path := gatetest.NewBackend(), gatetest.Socket(b)
				stop := gatetest.Serve(b, path, backend)
				all := waiting(b, backend, path, pods)
				for _, p := range all {
					total += pssKiB(b, p.Process.Pid)
				}
				for _, p := range all {
					require.NoError(b, p.Process.Kill())
					<-p.ended
				}
				rounds++
				stop()
			}
			b.ReportMetric(float64(total)/float64(rounds*pods), "KiB-PSS/pod")
		})
	}
}
