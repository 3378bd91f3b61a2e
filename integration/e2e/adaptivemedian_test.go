//go:build e2e && full

package e2e

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// tolerableMedian is tolerableAdaptive for the median of three, which one slow moment
// does not change.
const tolerableMedian = 1.2

// The median of three, which the README tells.
func TestAdaptiveHerdMedian(t *testing.T) {
	ratios := make([]float64, 3)
	for i := range ratios {
		ratios[i] = adaptiveHerd(t)
	}
	slices.SortFunc(ratios, cmp.Compare[float64])
	figure(t, "the median of %.2f is %.2f of unpaced and unkilled; the goal is 1.15", ratios, ratios[1])
	assert.LessOrEqual(t, ratios[1], tolerableMedian)
}
