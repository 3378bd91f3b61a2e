package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Containers that a restart of the runtime ended say nothing about hooks.
func TestANewConnectionForgetsTheExpectedHooks(t *testing.T) {
	t.Parallel()
	c := aChooser(Options{ProcRoot: t.TempDir()})
	c.Gate.breaker.begins(now0, "container", "uid")
	c.Connected("containerd", "2.4.2", 0)
	assert.Empty(t, c.Gate.breaker.gone(now0, "container"))
	assert.Empty(t, c.Gate.breaker.bars(now0, "uid"))
}
