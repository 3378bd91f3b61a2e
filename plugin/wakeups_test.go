package plugin

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/signals"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// counting counts the rounds of a monitor. Each round of the daemon wakes the monitor, so these are counted, too.
type counting struct {
	signals.Limiter
	rounds *atomic.Int64
}

func (c counting) Busy(now time.Time) (starting, waiting bool) {
	c.rounds.Add(1)
	return c.Limiter.Busy(now)
}

// A daemon costs the node nothing while no pod starts: no timer fires more than once a second.
func TestAnIdleDaemonWakesRarely(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings throttle.Settings
		before   func(s *starts.Starts)
		most     int64 // rounds in a minute
	}{
		"no limit":         {throttle.Settings{}, func(*starts.Starts) {}, 4},
		"a number":         {throttle.Settings{MaxConcurrent: 1}, func(*starts.Starts) {}, 4},
		"signals measured": {throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}}, func(*starts.Starts) {}, 12},
		"pods that kubelet does not retry": {
			throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}, MaxPulling: 1, FillEvery: time.Hour},
			func(s *starts.Starts) {
				for _, uid := range []string{"a", "b", "c"} {
					s.Sandbox(time.Now(), starts.NewSandbox{Sandbox: &api.PodSandbox{Uid: uid, Namespace: "ns", Name: uid}, Refusable: true})
				}
			}, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc := newProcTree(t, "1.00")
			synctest.Test(t, func(t *testing.T) {
				d := newDaemon(Options{Log: discard(), ProcRoot: proc.root, CgroupRoot: proc.root}, cores.Of(1), crd.Documents{}, nil, defaultTuning())
				rounds := &atomic.Int64{}
				d.signals = signals.New(proc.root, proc.root, cores.Of(1), counting{d.starts, rounds}, d.observer.Report)
				d.starts.Configure(time.Now(), crd.FromFile(&v1alpha1.PacemakerConfig{}), c.settings)
				c.before(d.starts)
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
	assert.GreaterOrEqual(t, serveEvery, time.Second)
}
