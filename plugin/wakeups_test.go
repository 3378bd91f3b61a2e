package plugin

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/sensor"
)

// counting counts the rounds of a sampler. Each round of the daemon wakes the sampler, so these are counted, too.
type counting struct {
	*signals.Monitor
	rounds *atomic.Int64
}

func (c counting) Watched() bool {
	c.rounds.Add(1)
	return c.Monitor.Watched()
}

// A daemon costs the node nothing while no pod starts: no timer fires more than once a second.
func TestAnIdleDaemonWakesRarely(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings throttle.Settings
		before   func(l *throttle.Limiter)
		most     int64 // rounds in a minute
	}{
		"no limit":         {throttle.Settings{}, func(*throttle.Limiter) {}, 4},
		"a number":         {throttle.Settings{MaxConcurrent: 1}, func(*throttle.Limiter) {}, 4},
		"signals measured": {throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}}, func(*throttle.Limiter) {}, 12},
		"pods that kubelet does not retry": {
			throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}, MaxPulling: 1, FillEvery: time.Hour},
			func(l *throttle.Limiter) {
				for _, uid := range []string{"a", "b", "c"} {
					l.Join(time.Now(), throttle.Request{UID: uid, Name: "ns/" + uid}).Reserve(time.Now(), 100*time.Second)
				}
			}, 12,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc := newProcTree(t, "1.00")
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(Options{Log: discard(), ProcRoot: proc.root, CgroupRoot: proc.root}, 1, crd.Documents{}, nil, defaultTuning())
				rounds := &atomic.Int64{}
				d.signals.Sampler = sensor.New(proc.root, counting{d.signals, rounds})
				d.limiter.Configure(time.Now(), c.settings)
				c.before(d.limiter)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 2)
				for _, loop := range []func(context.Context) error{d.starts.Run, d.signals.Run} {
					go func() { ended <- loop(ctx) }()
				}
				time.Sleep(time.Minute) // until the daemon is idle
				synctest.Wait()
				rounds.Store(0)
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Positive(t, rounds.Load(), "the daemon makes rounds")
				assert.LessOrEqual(t, rounds.Load(), c.most, "rounds in a minute")
				cancel()
				for range cap(ended) {
					require.NoError(t, <-ended)
				}
			})
		})
	}
	for _, every := range []time.Duration{lockEvery, taintEvery, httpEvery} {
		assert.GreaterOrEqual(t, every, time.Second)
	}
}
