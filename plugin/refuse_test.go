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
