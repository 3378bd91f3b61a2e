//go:build e2e && full

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// eachWay runs a scenario by refusal at a full gate, and with the waiting room. It gets how long slots may be empty
// because kubelet has to try pods again.
func eachWay(t *testing.T, run func(t *testing.T, d *daemon, more time.Duration)) {
	t.Helper()
	t.Run("by refusal", func(t *testing.T) { run(t, startDaemon(t), 2*retry) })
	t.Run("in the room", func(t *testing.T) { run(t, startDaemonWithRoom(t), 0) })
}

// Eight starts of 150 CPU-seconds are watched for five minutes, at a limit and with the adaptive one.
func TestStartsThatBurnForMinutes(t *testing.T) {
	const pods, watched = 8, 5 * time.Minute
	for name, throttle := range map[string]struct {
		config string
		limit  int
	}{"two at a time": {"maxConcurrent: {value: 2}", 2}, "adaptive": {"adaptive: {}", 0}} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, d *daemon, _ time.Duration) {
				d.configure(t, longConfig(throttle.config))
				s := watchLongStarts(t, d)
				deploy(t, s.ns, "burns", pods, herdPod(150))
				after(t.Context(), watched)
				s.assertQuiet(t, throttle.limit)
			})
		})
	}
}

// Twenty pods that idle for one to three minutes, four at a time, to their end.
func TestStartsThatIdleForMinutes(t *testing.T) {
	const pods, limit = 20, 4
	eachWay(t, func(t *testing.T, d *daemon, more time.Duration) {
		d.configure(t, longConfig(fmt.Sprintf("maxConcurrent: {value: %d}", limit)))
		s := watchLongStarts(t, d)
		idles := map[string]time.Duration{}
		for i := range pods {
			name := fmt.Sprintf("idles-%d", i)
			idles[name] = time.Minute + time.Duration(i*7%pods)*2*time.Minute/(pods-1) // long and short ones mixed
			createPod(t, s.ns, name, herdPod(0, sleeping(idles[name].String())))
		}
		s.awaitReady(t, pods)
		s.assertQuiet(t, limit)
		s.assertTook(t, s.order(t, idles), limit, more)
	})
}

// Ten starts of two seconds and four of two minutes, mixed, two at a time: alone, with a restart of the daemon in the
// middle, and with costs learned from starts of the same Deployments that did other work.
func TestMixedHerdOfShortAndLongStarts(t *testing.T) {
	t.Run("alone", func(t *testing.T) { mixedLong(t, nil, nil) })
	t.Run("daemon restarted midway", func(t *testing.T) {
		mixedLong(t, nil, func(t *testing.T, d *daemon) {
			require.NoError(t, d.Stop(t.Context()))
			require.NoError(t, d.Start(t.Context()))
		})
	})
	t.Run("costs learned of other work", func(t *testing.T) {
		mixedLong(t, func(t *testing.T, s *longStarts) {
			for i := range 3 {
				name := fmt.Sprintf("earlier-%d", i)
				deploy(t, s.ns, name, 3, herdPod(0.2))
			}
			s.awaitReady(t, 9)
			s.d.idle(t)
			after(t.Context(), 15*time.Second) // until that herd is over
		}, nil)
	})
}

// order returns what the starts took by name, in the order in which they began.
func (s *longStarts) order(t *testing.T, takes map[string]time.Duration) (inOrder []time.Duration) {
	t.Helper()
	for _, l := range lives(t, s.ns) {
		for name, d := range takes {
			if l.pod.Name == name || strings.HasPrefix(l.pod.Name, name+"-") {
				inOrder = append(inOrder, d)
			}
		}
	}
	return inOrder
}

// mixedLong runs the mixed herd each way. before: with the daemon that is to run it; midway: once the first long starts
// are under way. Each may be nil.
func mixedLong(t *testing.T, before func(t *testing.T, s *longStarts), midway func(t *testing.T, d *daemon)) {
	t.Helper()
	const short, long, limit = 10, 4, 2
	eachWay(t, func(t *testing.T, d *daemon, more time.Duration) {
		d.configure(t, longConfig(fmt.Sprintf("maxConcurrent: {value: %d}", limit)))
		if before != nil {
			before(t, watchLongStarts(t, d))
		}
		s := watchLongStarts(t, d)
		idles := map[string]time.Duration{}
		for i := range short + long {
			name, idle := fmt.Sprintf("short-%d", i), 2*time.Second
			if i%4 == 1 { // 1, 5, 9 and 13
				name, idle = fmt.Sprintf("long-%d", i), 2*time.Minute
			}
			idles[name] = idle
			createPod(t, s.ns, name, herdPod(0, sleeping(idle.String())))
		}
		require.Len(t, slices.DeleteFunc(slices.Collect(maps.Values(idles)), func(d time.Duration) bool { return d < time.Minute }), long)
		most := limit
		if midway != nil {
			eventually(t, "a long start is under way", func() bool { return ageOfOldest(d.status(t)) > 20*time.Second })
			midway(t, d)
			// A pod that kubelet tried again while no daemon ran started unpaced.
			most = max(limit, int(d.metric(t, `pod_pacemaker_unpaced_total{reason="Adopted"}`)))
		}
		s.awaitReady(t, short+long)
		s.assertQuiet(t, most)
		s.assertTook(t, s.order(t, idles), limit, more)
	})
}

// ageOfOldest returns how long the oldest start is under way.
func ageOfOldest(s admin.Status) (oldest time.Duration) {
	for _, p := range s.Starting {
		oldest = max(oldest, time.Since(p.Admitted))
	}
	return oldest
}
