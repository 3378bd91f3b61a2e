//go:build e2e

package e2e

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tolerableAdaptive is how much longer the herd may take with the limit that the
// node finds than unpaced without anybody killing it: 1.04 to 1.10 on a quiet machine.
const tolerableAdaptive = 1.3

// The herd with no number configured, against the same herd that nobody paces and
// no liveness probe kills.
func TestAdaptiveHerd(t *testing.T) {
	adaptiveHerd(t)
}

// adaptiveHerd gives how much more of the node the herd takes with the limit that the
// daemon finds than without limit and liveness probes. It never passes with a restart.
func adaptiveHerd(t *testing.T) (ratio float64) {
	t.Helper()
	repeated(t, func(t *testing.T) string {
		var unpaced, adaptive herd
		require.True(t, t.Run("unpaced", func(t *testing.T) { unpaced = herdIn(t, namespace(t)) }))
		require.True(t, t.Run("adaptive", func(t *testing.T) { adaptive = adaptedHerd(t) }))
		// Of the herd that nobody paces, other work hides nothing: it leaves no CPU idle.
		ratio = adaptive.ratio() / unpaced.ratioWithout(unpaced.machine.share())
		figure(t, "%s", adaptive)
		figure(t, "ratio %.2f to the herd unpaced and unkilled, which took %.1f s; %s", ratio, unpaced.took().Seconds(), unpaced.machine)
		if unpaced.late {
			return "the herd that this one is compared with was not ready"
		}
		return adaptive.judgeAdaptive(t, ratio)
	})
	return ratio
}

// judgeAdaptive is the verdict on a herd with the limit that the daemon finds, of which
// this is the ratio to the herd unpaced and unkilled.
func (h herd) judgeAdaptive(t *testing.T, ratio float64) (discarded string) {
	t.Helper()
	discarded = cmp.Or(h.unjudged(ratio, tolerableAdaptive), h.unjudged(h.ratio(), tolerablePaced))
	if discarded == "" {
		h.assertWhole(t)
		assert.LessOrEqual(t, ratio, tolerableAdaptive, "makespan, as a ratio to the herd unpaced and unkilled")
		assert.LessOrEqual(t, h.ratio(), tolerablePaced, "makespan, as a ratio to the ideal")
	}
	return discarded
}

// adaptedHerd is the herd at the limit that the daemon finds.
func adaptedHerd(t *testing.T) herd {
	t.Helper()
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {adaptive: {}}}")
	h := runHerd(t, d, withLiveness)
	assertNobodyUnpaced(t, d)
	return h
}
