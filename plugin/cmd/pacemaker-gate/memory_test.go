package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

// waiting starts hooks that wait at b.
func waiting(tb testing.TB, b *gatetest.Backend, path string, n int) []hook {
	tb.Helper()
	hooks := make([]hook, n)
	for i := range hooks {
		hooks[i] = startHook(tb, args(path))
	}
	for range n {
		b.Next(tb).SendForecast(time.Now().Add(time.Hour), 1, 0)
	}
	return hooks
}

func TestWaitingHookIsSmall(t *testing.T) {
	b, path := gatetest.Serving(t)
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
	b, path := gatetest.Serving(t)
	pid := waiting(t, b, path, 1)[0].Process.Pid
	assert.Less(t, gatetest.CPUShare(t, pid, waits), most, "CPUs")
}
