package signals

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// demand says whether pods start and wait.
type demand struct{ starting, waiting bool }

var idle, starting, waiting = demand{}, demand{starting: true}, demand{starting: true, waiting: true}

// client is a limiter that records the samples it gets.
type client struct {
	mu     sync.Mutex
	demand demand
	times  []time.Time
	last   throttle.Signals
}

func (c *client) Busy(time.Time) (starting, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.demand.starting, c.demand.waiting
}

func (c *client) Observe(now time.Time, s throttle.Signals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times, c.last = append(c.times, now), s
}

func (c *client) set(d demand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.demand = d
}

// told returns the times of the samples since the last call.
func (c *client) told() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := c.times
	c.times = nil
	return times
}

// running is a Monitor that runs in a bubble of time.
type running struct {
	*Monitor
	tree tree
	to   *client
}

// set sets the demand, and whether a limit needs signals. It takes no sample, as Prepare does.
func (r running) set(watched bool, d demand) {
	r.to.set(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = throttle.Settings{}
	if watched {
		r.settings = on(throttle.SignalLoad)
	}
}

// run calls f with a running Monitor, its /proc and its limiter.
func run(t *testing.T, watched bool, d demand, f func(t *testing.T, r running)) {
	t.Helper()
	t.Parallel()
	tr := newTree(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := running{tree: tr, to: &client{}}
		r.Monitor = New(tr.root, tr.root, cores.Of(2), r.to, func(observe.Event) {})
		r.set(watched, d)
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		f(t, r)
		cancel()
		require.NoError(t, <-ended)
	})
}

// pass lets time pass.
func (r running) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestMoreDemandGivesMoreSamples(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		demand demand
		every  time.Duration
	}{
		"waiting":  {waiting, 250 * time.Millisecond},
		"starting": {starting, 500 * time.Millisecond},
		"idle":     {idle, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, true, c.demand, func(t *testing.T, r running) {
				require.Len(t, r.to.told(), 1, "the first sample comes at once")
				r.tree.ticks(1, 1, 0)
				r.pass(250 * time.Millisecond)
				require.Len(t, r.to.told(), 1, "the second sample comes soon, for any demand")
				for i := range 20 {
					r.tree.ticks(float64(i+2), float64(i+2), 0)
					r.pass(c.every - time.Millisecond)
					require.Empty(t, r.to.told())
					r.pass(time.Millisecond)
					require.Len(t, r.to.told(), 1)
				}
			})
		})
	}
}

func TestASampleComesAtOnceWhenDemandRises(t *testing.T) {
	run(t, true, idle, func(t *testing.T, r running) {
		r.tree.ticks(1, 1, 0)
		r.pass(13 * time.Second)
		r.to.told()
		r.set(true, waiting)
		r.Wake()
		synctest.Wait()
		told := r.to.told()
		require.Len(t, told, 1)
		assert.Equal(t, time.Now(), told[0])
		for range 100 { // as in a limiter with many changes
			r.Wake()
			synctest.Wait()
		}
		assert.Empty(t, r.to.told(), "more demand must not give more than one sample in 250 ms")
		r.pass(250 * time.Millisecond)
		assert.Len(t, r.to.told(), 1)
	})
}

func TestNothingIsMeasuredWithoutALimit(t *testing.T) {
	run(t, false, waiting, func(t *testing.T, r running) {
		r.pass(24 * time.Hour)
		assert.Empty(t, r.to.told())
		r.set(true, idle)
		r.Wake()
		r.pass(0)
		assert.Len(t, r.to.told(), 1)
		r.tree.ticks(1, 1, 0)
		r.pass(time.Second)
		assert.Len(t, r.to.told(), 1)
		r.set(false, waiting)
		r.pass(24 * time.Hour)
		assert.Empty(t, r.to.told())
	})
}

func TestSignalsAreMeasuredOverTheWindow(t *testing.T) {
	run(t, true, waiting, func(t *testing.T, r running) {
		r.tree.write("loadavg", "3.25 2.00 1.00 4/100 77\n")
		for i := 1; i <= 12; i++ {
			s := float64(i) / 4
			r.tree.stall(0.5*s, 0.2*s, 0.4*s)
			r.tree.ticks(3*s, 0.5*s, 0.5*s)
			r.pass(250 * time.Millisecond)
		}
		now := time.Now()
		for signal, want := range map[throttle.Signal]float64{
			throttle.SignalCPU: 75, throttle.SignalIOWait: 12.5, throttle.SignalLoad: 3.25, throttle.SignalCPUPressure: 50,
			throttle.SignalMemoryPressure: 20, throttle.SignalMemoryFull: 5, throttle.SignalIOPressure: 40, throttle.SignalIOFull: 10,
		} {
			got := r.to.last[signal]
			require.NoError(t, got.Err)
			assert.InDelta(t, want, got.Value, 0.01, signal)
			assert.Equal(t, now, got.To, signal)
			if signal != throttle.SignalLoad {
				assert.Equal(t, 2*time.Second, span(got), signal)
			}
		}
		assert.Equal(t, 5*time.Second, span(r.to.last[throttle.SignalLoad]))
		r.Prepare(on(throttle.SignalLoad), 500*time.Millisecond)
		r.tree.ticks(9.25, 1.5, 1.5)
		r.tree.stall(1.5, 0.6, 1.2)
		r.pass(250 * time.Millisecond)
		assert.Equal(t, 500*time.Millisecond, span(r.to.last[throttle.SignalCPUPressure]))
		r.Prepare(on(throttle.SignalLoad), defaultWindow)
		r.tree.ticks(9.5, 1.75, 1.5)
		r.pass(250 * time.Millisecond)
		assert.Equal(t, defaultWindow, span(r.to.last[throttle.SignalCPUPressure]))
	})
}

func TestABlindSignalOpensAloneAndRecovers(t *testing.T) {
	run(t, true, waiting, func(t *testing.T, r running) {
		ticks := 0.0
		pass := func() throttle.Signals {
			ticks++
			r.tree.ticks(ticks, ticks, 0)
			r.pass(250 * time.Millisecond)
			return r.to.last
		}
		before := pass()
		r.tree.remove("pressure/io")
		for range lastStandsFor/(250*time.Millisecond) - 1 {
			require.Equal(t, before[throttle.SignalIOPressure], pass()[throttle.SignalIOPressure], "its last reading stands for it")
		}
		s := pass()
		require.ErrorIs(t, s[throttle.SignalIOPressure].Err, ErrAbsent)
		require.ErrorIs(t, s[throttle.SignalIOFull].Err, ErrAbsent)
		for _, sees := range []throttle.Signal{throttle.SignalCPU, throttle.SignalLoad, throttle.SignalCPUPressure} {
			require.NoError(t, s[sees].Err)
			assert.False(t, s[sees].To.IsZero())
		}
		r.tree.stall(0, 0, 0)
		pass()
		s = pass()
		require.NoError(t, s[throttle.SignalIOPressure].Err)
		assert.False(t, s[throttle.SignalIOPressure].To.IsZero())
	})
}

func TestAMeasurementOnDemandGivesSignals(t *testing.T) {
	run(t, false, idle, func(t *testing.T, r running) {
		begin := time.Now()
		go func() {
			time.Sleep(100 * time.Millisecond)
			r.tree.ticks(0.1, 0.3, 0)
		}()
		s := r.Measure()
		assert.InDelta(t, 25, s[throttle.SignalCPU].Value, 0.01)
		assert.Equal(t, 250*time.Millisecond, time.Since(begin), "the first sample needs a second one")
		r.pass(30 * time.Second)
		r.tree.ticks(10.1, 30.3, 0)
		begin = time.Now()
		s = r.Measure()
		assert.Zero(t, time.Since(begin), "the next call does not wait")
		assert.GreaterOrEqual(t, span(s[throttle.SignalCPU]), 30*time.Second)
		assert.Empty(t, r.to.told(), "the limiter gets no sample")
	})
}

func TestMeasurementsOnDemandDoNotDelayTheLimiter(t *testing.T) {
	run(t, true, waiting, func(t *testing.T, r running) {
		r.to.told()
		begin := time.Now()
		for i := range 100 {
			r.tree.ticks(float64(i+1)/20, 0, 0)
			r.pass(50 * time.Millisecond)
			r.Measure()
		}
		assert.Len(t, r.to.told(), int(time.Since(begin)/(250*time.Millisecond)))
	})
}

func BenchmarkSample(b *testing.B) {
	s := New("/proc", "/sys/fs/cgroup", cores.Of(runtime.NumCPU()), &client{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		s.sample()
	}
}
