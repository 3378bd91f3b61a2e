//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The daemon is killed and not started again: the waiting pods start one by one, in their order and
// at the pace that the daemon told them.
func TestDaemonGoneForGood(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	assertStartWithoutDaemon(t, d, func() { require.NoError(t, d.Kill(t.Context())) })
	require.NoError(t, d.Start(t.Context()))
}

// assertStartWithoutDaemon makes pods wait at the gate, or in the room if that is the only place, ends the
// daemon's work, and checks how the pods start.
func assertStartWithoutDaemon(t *testing.T, d *daemon, end func()) {
	t.Helper()
	const slow, waiters = 2, 5
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 10m}}")
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "slow", slow, herdPod(0.1, sleeping("300s")))
	eventually(t, "the slow pods hold the slots", func() bool { return len(d.status(t).Starting) == slow })
	deploy(t, ns, "herd", waiters, herdPod(0.1))
	eventually(t, "the whole herd waits at the gate, or in the room", func() bool {
		s := d.status(t)
		return s.Gate.Waiters == waiters || s.Room.Waiters == waiters
	})
	pace := d.status(t).Pace.Seconds.Duration()
	order := d.waitingNames(t)
	end()
	ended := time.Now()

	eventually(t, "the herd has started", func() bool { return len(hooks(t)) == 0 && readyOf(t, ns, "herd") == waiters })
	all := lives(t, ns)
	logLives(t, begin, all)
	assertUnharmed(t, all)
	var at []time.Time
	for _, name := range order {
		i := slices.IndexFunc(all, func(l life) bool { return l.pod.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		at = append(at, all[i].started)
	}
	for i, began := range at[1:] {
		assert.Greater(t, began.Sub(at[i]), pace/2, "%s after %s; the pace was %s", order[i+1], order[i], pace)
	}
	figure(t, "%d pods started without the daemon from %.1f s after its end, one every %.1f s on average; the pace was %.1f s",
		waiters, at[0].Sub(ended).Seconds(), at[waiters-1].Sub(at[0]).Seconds()/(waiters-1), pace.Seconds())
}
