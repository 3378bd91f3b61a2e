//go:build sim

package plugin

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// fixedSeeds are the seeds that every run tries: some of the first, those that ever found a fault of the daemon or of
// the judge, and some for what they draw.
var fixedSeeds = []uint64{1, 3, 4, 5, 6, 9, 10, 11, 16, 17, 18, 28, 36, 56, 144, 258, 312, 1006, 1075, 1089, 3244, 3400, 3419, 3423, 5041, 8010, 20000, 20003, 20004, 20005, 20012, 20019, 21004, 30086, 40000, 40005, 40007, 40009, 41051, 41071, 50002, 50004, 50007, 50009, 6000048, 6000065}

// TestShapes runs fixed seeds. With SHAPES_SEED, it runs that one, and writes all that was seen; with SHAPES_COUNT or
// SHAPES_MINUTES, it runs as many from there, or fresh ones, until one fails. With SHAPES_NODE, the seeds are those of
// TestChaos in integration/e2e, which runs them on a real node.
//
// All goroutines of a run share one CPU: then most seeds give the same run again.
func TestShapes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	seeds, draw := fixedSeeds, shapes.Draw
	if os.Getenv("SHAPES_NODE") != "" {
		draw = shapes.DrawNode
	}
	first, one := number(t, "SHAPES_SEED")
	count, many := number(t, "SHAPES_COUNT")
	minutes, timed := number(t, "SHAPES_MINUTES")
	began := time.Now()
	if one || many || timed {
		if !one {
			first = uint64(began.UnixMilli())
		}
		seeds = nil
		for i := range max(count, 1) {
			seeds = append(seeds, first+i)
		}
	}
	var lived time.Duration
	ran := 0
	try := func(seed uint64) {
		if t.Failed() && many { // one that is cut down is enough
			return
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			lived += tryShape(t, draw(seed), one && !many && !timed).last
			ran++
		})
	}
	for _, seed := range seeds {
		try(seed)
	}
	for seed := first + uint64(len(seeds)); timed && !t.Failed() && time.Since(began) < time.Duration(minutes)*time.Minute; seed++ {
		try(seed)
	}
	t.Logf("%d nodes lived %s in %s", ran, lived.Round(time.Second), time.Since(began).Round(time.Second))
}

// herds are shapes that show what seeds seldom do: each has what a fault of the daemon needs to be seen.
var herds = map[string]func() *shapes.Shape{
	"starts that hang keep their slots until their time is over": func() *shapes.Shape {
		return herd(shapes.Limits{Concurrent: 2, StartTimeout: time.Minute, MaxWait: time.Hour}, 8, func(_ int, p *shapes.Pod) { p.Ready = 20 * time.Minute })
	},
	"pods that may not fail": func() *shapes.Shape {
		return herd(shapes.Limits{Concurrent: 4}, 30, func(i int, p *shapes.Pod) {
			if i%3 == 0 {
				p.Policy, p.Runs, p.Pull = corev1.RestartPolicyNever, 20*time.Second, 3*time.Second
			}
		})
	},
	"a node that is busy for minutes": func() *shapes.Shape { return busyHerd(throttle.SignalMemoryPressure) },
	"a node with a high load average": func() *shapes.Shape { return busyHerd(throttle.SignalLoad) },
	"an adaptive limit": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 12, AdaptiveMin: 2, AdaptiveMax: 5, MaxWait: time.Hour}, 40, func(_ int, p *shapes.Pod) { p.Cores = 0.1 })
		s.Cores = 16
		return s
	},
	"an adaptive limit on a node that others keep busy": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 12, AdaptiveMin: 3, MaxWait: time.Hour}, 20, func(_ int, p *shapes.Pod) { p.Cores, p.Ready = 1, 20*time.Second })
		s.Faults = []shapes.Fault{{Kind: shapes.NodeIsBusy, Gap: 10 * time.Minute, Load: shapes.Load{CPU: 300}}}
		return s
	},
	"a load average that each start raises": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 12, MaxWait: time.Hour, Signal: throttle.SignalLoad, Most: 8, Increment: 2}, 30, func(_ int, p *shapes.Pod) { p.At += time.Minute })
		s.Cores = 16
		return s
	},
	"sandboxes that die while their pods start": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 2, MaxWait: time.Hour}, 60, func(_ int, p *shapes.Pod) { p.Inits, p.Ready = []time.Duration{3 * time.Second}, time.Second })
		for i := range 10 {
			s.Faults = append(s.Faults, shapes.Fault{Kind: shapes.SandboxDies, At: time.Duration(50+7*i) * time.Second})
		}
		return s
	},
	"a containerd that bears no hooks that wait":      func() *shapes.Shape { return oldHerd("v2.2.6") },
	"a containerd that keeps what it refused":         func() *shapes.Shape { return oldHerd("v2.3.2") },
	"a containerd that bears neither":                 func() *shapes.Shape { return oldHerd("v2.2.5") },
	"a file that changes while pods are refused":      func() *shapes.Shape { return fileHerd(false) },
	"a file that changes while pods wait in the gate": func() *shapes.Shape { return fileHerd(true) },
	"pods that crash behind pods that start first": func() *shapes.Shape {
		return herd(shapes.Limits{Concurrent: 2, MaxWait: time.Hour}, 40, func(i int, p *shapes.Pod) {
			if i < 4 {
				p.Crashes = 2
			}
		})
	},
	"a clock that is set while pods settle": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 2, SettleTime: 10 * time.Second}, 12, func(_ int, p *shapes.Pod) { p.Probed = false })
		s.Faults = []shapes.Fault{{Kind: shapes.ClockIsSet, Step: time.Hour}, {Kind: shapes.DaemonRestarts, At: 5 * time.Second, Gap: time.Second}}
		return s
	},
	"pods that the waiting room lets out in time to pull": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 4, FillFactor: 26 * time.Second, MaxWait: time.Hour}, 16, func(_ int, p *shapes.Pod) { p.Pull = 18 * time.Second })
		s.Room, s.RequestTimeout = true, 15*time.Minute // so that no pod has to come back
		return s
	},
	"the waiting room": func() *shapes.Shape {
		s := herd(shapes.Limits{Concurrent: 3}, 40, func(i int, p *shapes.Pod) {
			if i%2 == 0 {
				p.Policy, p.Runs = corev1.RestartPolicyNever, 20*time.Second
			}
		})
		s.Room, s.Faults = true, []shapes.Fault{
			{Kind: shapes.DaemonRestarts, At: 20 * time.Second, Gap: 3 * time.Second}, {Kind: shapes.ClockIsSet, At: 30 * time.Second, Step: -time.Hour},
			{Kind: shapes.CNIChanges, At: 50 * time.Second}, {Kind: shapes.CNIChanges, At: 90 * time.Second},
		}
		return s
	},
}

// oldHerd is a herd on a containerd of an earlier version.
func oldHerd(version string) *shapes.Shape {
	s := herd(shapes.Limits{Concurrent: 3}, 30, func(i int, p *shapes.Pod) {
		if i%3 == 0 {
			p.Policy, p.Runs = corev1.RestartPolicyNever, 20*time.Second
		}
	})
	s.Containerd = version
	return s
}

// fileHerd is a herd beside a standalone daemon, whose file changes and is broken for a while.
func fileHerd(gate bool) *shapes.Shape {
	l := shapes.Limits{Concurrent: 2, MaxWait: time.Hour, StartTimeout: time.Minute}
	s := herd(l, 30, func(_ int, p *shapes.Pod) { p.Inits = []time.Duration{3 * time.Second} })
	s.Standalone, s.GateAlways, s.RequestTimeout = true, gate, 15*time.Minute
	l.Concurrent = 3
	s.Faults = []shapes.Fault{
		{Kind: shapes.ConfigChanges, At: 30 * time.Second, Limits: l},
		{Kind: shapes.FileBroken, At: 80 * time.Second, Gap: 5 * time.Second}, {Kind: shapes.DaemonRestarts, At: 2 * time.Minute, Gap: time.Second},
	}
	return s
}

// busyHerd is a herd on a node that is busy twice: for less than maxWait, and for more.
func busyHerd(signal throttle.Signal) *shapes.Shape {
	s := herd(shapes.Limits{Concurrent: 4, MaxWait: 5 * time.Minute, Signal: signal, Most: 20}, 30, func(i int, p *shapes.Pod) {
		p.At = time.Duration(i) * 20 * time.Second
	})
	s.Cores = 16
	s.Faults = []shapes.Fault{
		{Kind: shapes.NodeIsBusy, Gap: 20 * time.Minute, Load: shapes.Load{CPU: 80, Memory: 15}}, // below the limit, but not far below
		{Kind: shapes.NodeIsBusy, At: 30 * time.Second, Gap: 2 * time.Minute, Load: shapes.Load{CPU: 400, Memory: 60}},
		{Kind: shapes.NodeIsBusy, At: 5 * time.Minute, Gap: 15 * time.Minute, Load: shapes.Load{CPU: 400, Memory: 60}},
	}
	return s
}

// TestHerds runs the herds.
func TestHerds(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, shape := range herds {
		t.Run(name, func(t *testing.T) {
			s := shape()
			seen := tryShape(t, s, false)
			assert.Positive(t, seen.gateWaits+seen.refusals+seen.roomWaits)
			if s.Room {
				assert.Positive(t, seen.roomWaits)
			}
			if s.GateAlways {
				assert.Positive(t, seen.gateWaits)
			}
		})
	}
}

// number returns the number in an environment variable.
func number(t *testing.T, name string) (n uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n, true
}

// TestASeedIsOneRun runs seeds twice, of pods with several containers, and of a kubelet that is restarted.
func TestASeedIsOneRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, seed := range []uint64{1, 5} {
		first, second := runShape(t, shapes.Draw(seed), nil).told(), runShape(t, shapes.Draw(seed), nil).told()
		assert.Equal(t, first, second, "seed %d", seed)
	}
}
