//go:build e2e

package e2e

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tolerableAdaptive bounds the makespan with the limit that the daemon finds, as a ratio to the
// unpaced herd without liveness probes: 1.02 to 1.10 where other work takes little.
const tolerableAdaptive = 1.2

// A herd without a configured limit takes at most 1.2 times as long as the same herd unpaced and
// without liveness probes.
func TestAdaptiveHerd(t *testing.T) {
	adaptiveHerd(t)
}

// adaptiveHerd returns the ratio of the herd's makespan with the limit that the daemon finds to its
// makespan without limit and liveness probes. The test fails if a pod restarts.
func adaptiveHerd(t *testing.T) (ratio float64) {
	t.Helper()
	repeated(t, func(t *testing.T) string {
		var unpaced, adaptive herd
		require.True(t, t.Run("unpaced", func(t *testing.T) { unpaced = herdIn(t, namespace(t)) }))
		require.True(t, t.Run("adaptive", func(t *testing.T) { adaptive = adaptedHerd(t) }))
		// The unpaced herd leaves no CPU idle, so other work cannot use idle CPUs unnoticed.
		ratio = adaptive.ratio() / unpaced.ratioWithout(unpaced.machine.besidePods())
		figure(t, "%s", adaptive)
		figure(t, "ratio %.2f to the unpaced herd without liveness probes, which took %.1f s; %s", ratio, unpaced.took().Seconds(), unpaced.machine)
		if unpaced.late {
			return "the herd to compare with was not ready"
		}
		return adaptive.judgeAdaptive(t, ratio)
	})
	return ratio
}

// judgeAdaptive judges a herd with the limit that the daemon finds. ratio is that to the unpaced
// herd without liveness probes.
func (h herd) judgeAdaptive(t *testing.T, ratio float64) (discarded string) {
	t.Helper()
	discarded = cmp.Or(h.unjudged(ratio, tolerableAdaptive), h.unjudged(h.ratio(), tolerablePaced))
	if discarded == "" {
		h.assertEachStartedOnce(t)
		assert.LessOrEqual(t, ratio, tolerableAdaptive, "makespan as a ratio to the unpaced herd without liveness probes")
		assert.LessOrEqual(t, h.ratio(), tolerablePaced, "makespan as a ratio to the ideal")
	}
	return discarded
}

// adaptedHerd runs the herd with the limit that the daemon finds, and with the waiting room, as by default.
func adaptedHerd(t *testing.T) herd {
	t.Helper()
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {adaptive: {}}}")
	h := runHerd(t, d, withLiveness)
	assertAllPaced(t, d)
	return h
}
