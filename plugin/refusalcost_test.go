package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRefusalsAtTheSandboxAreBounded(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 2}
	now := time.Unix(0, 0)
	n := 0
	for c.atSandbox(now, RefuseAuto) {
		c.add(now, atSandbox)
		n++
	}
	// 2 % of two cores for a minute is 2.4 CPU-seconds: 12 refusals of 0.2.
	assert.Equal(t, 12, n)
	assert.False(t, c.atSandbox(now.Add(refusalWindow-1), RefuseAuto))
	assert.True(t, c.atSandbox(now.Add(refusalWindow), RefuseAuto), "a minute later they count no more")
}

func TestRefusalPointCanBeFixed(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 1000 {
		assert.True(t, c.atSandbox(now, RefuseSandbox))
		assert.False(t, c.atSandbox(now, RefuseContainer))
	}
}

func TestRefusalsAtTheContainerCostTheNodeToo(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 24 { // of 50 ms: 1.2 CPU-seconds, 2 % of a core's minute
		assert.True(t, c.atSandbox(now, RefuseAuto))
		c.add(now, atContainer)
	}
	assert.False(t, c.atSandbox(now, RefuseAuto))
	assert.InDelta(t, 0.02, c.share(now), 1e-9)
}

func TestRefusalsAreNotRememberedForEver(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 1000 { // one in a second, and nobody asks what they cost
		c.add(now, atContainer)
		now = now.Add(time.Second)
	}
	assert.Equal(t, int(refusalWindow/time.Second), len(c.recent)) //nolint:testifylint // it would print all of them
}
