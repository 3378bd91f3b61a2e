package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

// waiting starts hooks that wait at b.
func waiting(tb testing.TB, b *gatetest.Backend, path string, n int) []*hook {
	tb.Helper()
	hooks := make([]*hook, n)
	for i := range hooks {
		hooks[i] = startHook(tb, args(path))
	}
	for range n {
		b.Next(tb).SendForecast(time.Now().Add(time.Hour), 1, 0)
	}
	return hooks
}

func TestWaitingHookIsSmall(t *testing.T) {
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	gatetest.Serve(t, path, b)
	t.Setenv("GOMAXPROCS", "64") // as on a node with as many CPUs
	h := waiting(t, b, path, 1)[0]
	assert.LessOrEqual(t, gatetest.PSS(t, h.Process.Pid), int64(2048))
	assert.Zero(t, gatetest.ProcNumber(t, h.Process.Pid, "status", "THP_enabled"))
}

// A waiting hook uses less than a thousandth of a CPU over the whole time. It only checks, now and then, that the
// processes for which it waits are alive.
func TestWaitingHookSleeps(t *testing.T) {
	t.Parallel()
	const waits, most = 3 * time.Second, 0.001
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	gatetest.Serve(t, path, b)
	pid := waiting(t, b, path, 1)[0].Process.Pid
	assert.Less(t, gatetest.CPUShare(t, pid, waits), most, "CPUs")
}

func BenchmarkWaitingPSS(b *testing.B) {
	for _, hooks := range []int{1, 20} {
		b.Run(fmt.Sprintf("hooks=%d", hooks), func(b *testing.B) {
			var total, most int64
			rounds := 0
			for b.Loop() {
				backend, path := gatetest.NewBackend(), gatetest.Socket(b)
				stop := gatetest.Serve(b, path, backend)
				all := waiting(b, backend, path, hooks)
				for _, h := range all {
					pss := gatetest.PSS(b, h.Process.Pid)
					total += pss
					most = max(most, pss)
				}
				for _, h := range all {
					require.NoError(b, h.Process.Kill())
					<-h.ended
				}
				rounds++
				stop()
			}
			b.ReportMetric(float64(total)/float64(rounds*hooks), "KiB-PSS/hook")
			b.ReportMetric(float64(most), "KiB-PSS/hook-max")
		})
	}
}

// BenchmarkReleaseToExit measures from the backend's decision to the end of the
// hook's process, as its parent sees it.
func BenchmarkReleaseToExit(b *testing.B) {
	backend, path := gatetest.NewBackend(), gatetest.Socket(b)
	gatetest.Serve(b, path, backend)
	var took []time.Duration
	for b.Loop() {
		h := startHook(b, args(path))
		w := backend.Next(b)
		began := time.Now()
		w.Decide(gate.Verdict{Go: true})
		<-h.ended
		took = append(took, time.Since(began))
		require.True(b, h.ProcessState.Success())
	}
	slices.Sort(took)
	percentile := func(p int) float64 { return took[(len(took)-1)*p/100].Seconds() * 1e3 }
	b.ReportMetric(percentile(50), "p50-ms")
	b.ReportMetric(percentile(99), "p99-ms")
}
