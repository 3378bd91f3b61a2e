package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

// waiting starts pods that wait at b.
func waiting(tb testing.TB, b *gatetest.Backend, path string, pods int) []plugin {
	tb.Helper()
	all := make([]plugin, pods)
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
	b, path := gatetest.Serving(t)
	pid := waiting(t, b, path, 1)[0].Process.Pid
	used := gatetest.CPUShare(t, pid, waits)
	t.Logf("%d KiB, %.5f CPUs", gatetest.PSS(t, pid), used)
	assert.Less(t, used, most, "CPUs")
	// The kernel maps some pages around each used page, as many as are cached: seven runs took 2016 to 2100 KiB.
	assert.LessOrEqual(t, gatetest.PSS(t, pid), int64(2200))
}
