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

// A herd is judged by what the node had for it, so that other work of the machine does
// not excuse a start:
//
// A node of N CPUs has N*T - F CPU-seconds for a herd that is ready after T, where F is
// what others than the run took. The herd needs W. The ratio of these is the makespan
// over the ideal W/N on a machine without other work, and stays near that where others
// take a part of the CPUs: T and F grow together. CPU time that killed containers, the
// runtime, kubelet or the daemon use, and CPUs that idle, are neither in F nor in W:
// they make the ratio greater.
//
// Other work also fills what a pacer leaves idle, and hides it in F. So F counts up to a
// third of the machine, and how many pods start at a time is judged apart from it: it is
// a ratio of times of the same run, which other work stretches alike.
//
// A herd on a machine of which others took more than that third can still pass, by the
// same bounds. It cannot fail for the ratio or for restarts: 19 s of liveness are then
// less than a start of 4 CPU-seconds may take. Such a try is discarded.
const tolerableForeign = 1.0 / 3

// Bounds of the herd with a limit of two. On a quiet machine the ratio is 1.28 to 1.31:
// 4 CPU-seconds, half a second until the next probe, a step of runc, and setting up the
// sandboxes; the rest is for slow moments. One start at a time makes it more than 2.2.
// Between the first start and the last, while pods wait, two start nearly all the time;
// with one at a time the mean is 1.0 at most.
const (
	tolerablePaced = 1.6
	leastStarting  = 1.6
)

// herd is what happened to a herd.
type herd struct {
	begin   time.Time
	all     []life
	late    bool // some were not ready after all the patience that there is
	machine span
}

// took is the makespan: from the creation until the last pod was ready.
func (h herd) took() time.Duration { return lastReady(h.all).Sub(h.begin) }

// ratio is what the node had for the herd, over what the herd needs.
func (h herd) ratio() float64 { return h.ratioWithout(min(h.machine.share(), tolerableForeign)) }

// ratioWithout is the ratio where others took that share of the machine.
func (h herd) ratioWithout(foreign float64) float64 {
	capacity := h.took().Seconds() * float64(runtime.NumCPU())
	return capacity * (1 - foreign) / (herdPods * herdCPUSeconds)
}

// unjudged says why a herd with such a ratio cannot be judged; empty: it can.
func (h herd) unjudged(ratio, bound float64) string {
	killed := restarted(h.all)
	if h.machine.share() <= tolerableForeign || (killed == 0 && ratio <= bound && !h.late) {
		return ""
	}
	return fmt.Sprintf("ratio %.2f (bound %.2f), %d restarts, some never ready: %t, while other work took %.0f %% of the machine, more than %.0f %%",
		ratio, bound, killed, h.late, 100*h.machine.share(), 100*tolerableForeign)
}

func (h herd) String() string {
	return fmt.Sprintf("%d pods all ready after %.1f s, ratio %.2f (ideal on an idle machine %.1f s); %d restarts; at most %d starting, %.2f on average; %s",
		herdPods, h.took().Seconds(), h.ratio(), idealHerd().Seconds(), restarted(h.all), mostStarting(h.all), meanStarting(h.all), h.machine)
}

// meanStarting is how many pods were between the start of their process and ready on
// average, from the first start to the last: others wait all that time.
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

// restarted is how many containers there were beyond one for each pod.
func restarted(all []life) (n int) {
	for _, l := range all {
		n += max(int(restarts(l.pod)), l.attempts-1)
	}
	return n
}

// assertWhole checks that every pod of a herd started once, and got ready.
func (h herd) assertWhole(t *testing.T) {
	t.Helper()
	assert.False(t, h.late, "not all were ready after %s", patience)
	assert.Len(t, h.all, herdPods)
	for _, l := range h.all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
		assert.Equal(t, 1, l.attempts, "containers of %s", l.pod.Name)
		assert.False(t, l.started.IsZero() || l.ready.IsZero(), "%s: started %v, ready %v", l.pod.Name, l.started, l.ready)
	}
}

// assertConcurrency checks that two pods started at a time, and no more. Other work excuses
// neither, but for the mean where it took more than it may.
func (h herd) assertConcurrency(t *testing.T) (discarded string) {
	t.Helper()
	assert.Equal(t, 2, mostStarting(h.all), "pods between the start of their process and ready")
	mean := meanStarting(h.all)
	if mean < leastStarting && h.machine.share() > tolerableForeign {
		return fmt.Sprintf("%.2f starting on average, less than %.2f", mean, leastStarting)
	}
	assert.GreaterOrEqual(t, mean, leastStarting, "pods starting on average while others waited")
	return ""
}

// judgePaced is the verdict on a herd with a limit of two.
func (h herd) judgePaced(t *testing.T) (discarded string) {
	t.Helper()
	discarded = cmp.Or(h.assertConcurrency(t), h.unjudged(h.ratio(), tolerablePaced))
	if discarded == "" {
		h.assertWhole(t)
		assert.LessOrEqual(t, h.ratio(), tolerablePaced, "makespan, as a ratio to the ideal")
	}
	return discarded
}
