package waiting

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
	for c.share(now) < refusalShare {
		c.add(now, RefuseSandbox)
		n++
	}
	// 2 % of two cores for a minute is 2.4 CPU-seconds: 12 refusals of 0.2.
	assert.Equal(t, 12, n)
	assert.GreaterOrEqual(t, c.share(now.Add(refusalWindow-1)), refusalShare)
	assert.Zero(t, c.share(now.Add(refusalWindow)), "they do not count a minute later")
}

func TestRefusalPointCanBeFixed(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	sandbox := aChooser(Options{RefuseAt: RefuseSandbox, Cores: 1}).Refusals
	container := aChooser(Options{RefuseAt: RefuseContainer, Cores: 1}).Refusals
	for range 1000 {
		sandbox.cost.add(now, RefuseSandbox)
	}
	assert.True(t, sandbox.atSandbox(now), "the fixed point stays at any cost")
	assert.False(t, container.atSandbox(now))
}

func TestRefusalsAtTheContainerCostTheNodeToo(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 24 { // 50 ms each: 1.2 CPU-seconds, 2 % of a core's minute
		assert.Less(t, c.share(now), refusalShare)
		c.add(now, RefuseContainer)
	}
	assert.GreaterOrEqual(t, c.share(now), refusalShare)
	assert.InDelta(t, 0.02, c.share(now), 1e-9)
}

func TestRefusalsAreNotRememberedForEver(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 1000 { // one in a second; their cost is not read meanwhile
		c.add(now, RefuseContainer)
		now = now.Add(time.Second)
	}
	assert.Equal(t, int(refusalWindow/time.Second), len(c.recent)) //nolint:testifylint // it would print all of them
}
