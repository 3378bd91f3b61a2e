//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Other work on the machine does not excuse a slow start. So a herd is judged by the CPU time that
// the node had for its pods:
//
// A node of N CPUs has N*T - F CPU-seconds for a herd that is ready after T. F is what processes
// outside the run used, and what the services of the run did: API server, etcd, kubelet, containerd
// and the daemon. The services took 20 to 37 % of 2 CPUs, by how fast the machine was, and 30 %
// with no daemon. The herd needs W. The ratio of the two is the makespan over the ideal W/N on a
// machine without other work. It stays near that when other work takes a part of the CPUs, because
// T and F grow together. The CPU time of killed containers is neither in F nor in W, and idle CPU
// time is not either: both make the ratio greater.
//
// What runs beside the pods also fills what a pacer leaves idle, and hides it in F. So F counts only
// up to a third of the machine. How many pods start at a time is judged without F: it is a ratio of
// times of the same run, and other work stretches both alike.
//
// If processes outside the run took more than that third, a herd can still pass by the same bounds.
// It cannot fail for the ratio or for restarts: 19 s of liveness are then less than a start of 4
// CPU-seconds may take. The try is discarded. If those processes and the services together took more,
// the ratio contains CPU time that the node did not have for its pods: then a herd cannot fail for the
// ratio either, but it can fail for restarts.
const tolerableForeign = 1.0 / 3

// Bounds of the herd with a limit of two. On a quiet machine the ratio is 1.26 to 1.31: 4
// CPU-seconds, half a second until the next probe, a step of runc, and the setup of the sandboxes.
// The rest allows for slow moments. One start at a time makes the ratio more than 2.2. From the
// first start to the last, while pods wait, two start nearly all the time; with one at a time the
// mean is at most 1.0.
const (
	tolerablePaced = 1.5
	leastStarting  = 1.6
)

// herd is the outcome of a herd.
type herd struct {
	begin   time.Time
	all     []life
	late    bool // some pods were not ready when testTimeout ran out
	machine span
}

// took returns the makespan, from the creation until the last pod is ready.
func (h herd) took() time.Duration { return lastReady(h.all).Sub(h.begin) }

// ratio returns the CPU time that the node had for the herd over the CPU time that the herd needs.
func (h herd) ratio() float64 { return h.ratioWithout(min(h.machine.besidePods(), tolerableForeign)) }

// ratioWithout is ratio for a given share of what ran beside the pods.
func (h herd) ratioWithout(share float64) float64 {
	capacity := h.took().Seconds() * float64(runtime.NumCPU())
	return capacity * (1 - share) / (herdPods * herdCPUSeconds)
}

// unjudged says why a herd with this ratio cannot be judged, or returns nothing.
func (h herd) unjudged(ratio, bound float64) string {
	killed := restarted(h.all)
	harmed := killed > 0 || h.late
	if !harmed && ratio <= bound {
		return ""
	}
	share, what := h.machine.besidePods(), "other work and the node's services"
	if harmed {
		share, what = h.machine.share(), "other work"
	}
	if share <= tolerableForeign {
		return ""
	}
	return fmt.Sprintf("ratio %.2f (bound %.2f), %d restarts, some pods never ready: %t; %s took %.0f %% of the machine, more than %.0f %%",
		ratio, bound, killed, h.late, what, 100*share, 100*tolerableForeign)
}

func (h herd) String() string {
	return fmt.Sprintf("%d pods all ready after %.1f s, ratio %.2f (ideal on an idle machine %.1f s); %d restarts; at most %d starting at a time, %.2f on average; %s",
		herdPods, h.took().Seconds(), h.ratio(), idealHerd().Seconds(), restarted(h.all), mostOfStarted(h.all), meanStarting(h.all), h.machine)
}

// meanStarting returns how many pods were between the start of their process and ready on average,
// from the first start to the last. Other pods wait during all of that time.
func meanStarting(all []life) float64 {
	var first, last time.Time
	for _, l := range all {
		if !l.started.IsZero() && (first.IsZero() || l.started.Before(first)) {
			first = l.started
		}
		if l.started.After(last) {
			last = l.started
		}
	}
	sum := 0.0
	for _, l := range all {
		end := l.ready
		if end.IsZero() || end.After(last) {
			end = last
		}
		if !l.started.IsZero() {
			sum += end.Sub(l.started).Seconds()
		}
	}
	return sum / last.Sub(first).Seconds()
}

// restarted returns the number of containers beyond one for each pod.
func restarted(all []life) (n int) {
	for _, l := range all {
		n += max(int(restarts(l.pod)), l.attempts-1)
	}
	return n
}

// assertEachStartedOnce checks that every pod of a herd started once and got ready.
func (h herd) assertEachStartedOnce(t *testing.T) {
	t.Helper()
	assert.False(t, h.late, "some pods were not ready after %s", testTimeout)
	assert.Len(t, h.all, herdPods)
	for _, l := range h.all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
		assert.Equal(t, 1, l.attempts, "containers of %s", l.pod.Name)
		assert.False(t, l.started.IsZero() || l.ready.IsZero(), "%s: started %v, ready %v", l.pod.Name, l.started, l.ready)
	}
}

// assertConcurrency checks that two pods started at a time, and no more. The mean alone is excused
// by too much other work.
func (h herd) assertConcurrency(t *testing.T) (discarded string) {
	t.Helper()
	assert.Equal(t, 2, mostStarting(t, h.all), "pods between the start of their process and ready")
	mean := meanStarting(h.all)
	if mean < leastStarting && h.machine.share() > tolerableForeign {
		return fmt.Sprintf("%.2f pods starting on average, less than %.2f", mean, leastStarting)
	}
	assert.GreaterOrEqual(t, mean, leastStarting, "mean number of starting pods while others waited")
	return ""
}

// judgePaced judges a herd with a limit of two.
func (h herd) judgePaced(t *testing.T) (discarded string) {
	t.Helper()
	discarded = cmp.Or(h.assertConcurrency(t), h.unjudged(h.ratio(), tolerablePaced))
	if discarded == "" {
		h.assertEachStartedOnce(t)
		assert.LessOrEqual(t, h.ratio(), tolerablePaced, "makespan as a ratio to the ideal")
	}
	return discarded
}
