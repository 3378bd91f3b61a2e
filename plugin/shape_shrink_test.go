package plugin

import (
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// tryShape runs a shape. If it breaks a rule, tryShape cuts it down, fails the test, and writes the steps that are left
// and what was seen of them. It returns what was seen of the whole shape.
func tryShape(t *testing.T, s *shapes.Shape, tells bool) *judge {
	t.Helper()
	seen := runShape(t, s, nil)
	if tells {
		t.Logf("%s%s", s, seen.told())
	}
	t.Logf("seed %d: %d pods for %s, excepted %v", s.Seed, len(s.Pods), seen.last.Round(time.Second), seen.excepted)
	first, n := seen.verdict()
	if first == nil {
		return seen
	}
	small, last := s, seen
	if os.Getenv("SHAPES_LOG") == "" { // else the log would be of many runs
		small, last = shrink(t, s, first.rule)
	}
	t.Errorf("seed %d breaks a rule, and %d times in all:\n  %s\n  after %s: %s\n\nThis is enough for it:\n%s\nWhat was seen of that:\n%s",
		s.Seed, n, first.rule, first.at, first.text, small, last.told())
	return seen
}

// mostTries is how many shapes shrink runs, and mostCutting how long it does so.
const (
	mostTries   = 150
	mostCutting = 3 * time.Minute
)

// shrink cuts a shape down to one that still breaks the rule, as delta debugging does, and returns what was seen of it.
// The order of goroutines differs between runs: what breaks the rule only sometimes may stay larger than it must be.
func shrink(t *testing.T, s *shapes.Shape, rule string) (small *shapes.Shape, last *judge) {
	t.Helper()
	small, last = s, runShape(t, s, nil)
	until := time.Now().Add(mostCutting)
	tries := 0
	try := func(change func(s *shapes.Shape)) bool {
		if tries++; tries > mostTries || time.Now().After(until) {
			return false
		}
		candidate := small.Clone()
		change(candidate)
		seen := runShape(t, candidate, nil)
		breaks := slices.ContainsFunc(seen.complaints, func(c complaint) bool { return c.rule == rule })
		if breaks {
			small, last = candidate, seen
		}
		return breaks
	}
	for size := len(s.Pods) / 2; size > 0; size /= 2 {
		for from := 0; from < len(small.Pods); {
			if !try(func(s *shapes.Shape) { s.Pods = slices.Delete(s.Pods, from, min(from+size, len(s.Pods))) }) {
				from += size
			}
		}
	}
	for i := range slices.Backward(s.Faults) {
		try(func(s *shapes.Shape) { s.Faults = slices.Delete(s.Faults, i, i+1) })
	}
	for _, simplify := range simplifications {
		if !try(func(s *shapes.Shape) {
			for i := range s.Pods {
				simplify(s, &s.Pods[i])
			}
		}) {
			for i := range small.Pods {
				try(func(s *shapes.Shape) { simplify(s, &s.Pods[i]) })
			}
		}
	}
	return small, last
}

// simplifications make a pod, or what all have in common, plainer.
var simplifications = []func(s *shapes.Shape, p *shapes.Pod){
	func(_ *shapes.Shape, p *shapes.Pod) { p.Inits = nil },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Containers = 1 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Cores = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Pull = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Crashes = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Environment = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Labels = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Rejected = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Grouped = false },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Sidecars = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Hangs = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) {
		if p.Hangs == 0 {
			p.Startup, p.Liveness = nil, nil
		}
	},
	func(_ *shapes.Shape, p *shapes.Pod) { p.Deleted = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Owner = "" },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Priority = 0 },
	func(_ *shapes.Shape, p *shapes.Pod) { p.Namespace = "a" },
	func(_ *shapes.Shape, p *shapes.Pod) {
		p.Policy, p.Runs, p.Grouped = corev1.RestartPolicyAlways, 0, false
	},
	func(_ *shapes.Shape, p *shapes.Pod) { p.Probed = true },
	func(_ *shapes.Shape, p *shapes.Pod) {
		p.At, p.Ready = p.At.Round(time.Second), p.Ready.Round(time.Second)
	},
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.FillFactor, s.Limits.Burst = 0, 0 },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.SettleTime = 0 },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.MaxWait = 0 },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.StartTimeout = 0 },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.UnfairNone = false },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Room = false },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Standalone, s.GateAlways = false, false },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.AdaptiveMin, s.Limits.AdaptiveMax = 0, 0 },
	func(s *shapes.Shape, _ *shapes.Pod) { s.Limits.Most, s.Limits.Increment = 0, 0 },
}
