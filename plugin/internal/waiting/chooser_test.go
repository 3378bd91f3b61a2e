package waiting

import (
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGateLearnsWhichSandboxesAreGone(t *testing.T) {
	t.Parallel()
	c := aChooser(Options{ProcRoot: t.TempDir()})
	c.Connected("containerd", "2.4.2", 0)
	first, second := &api.PodSandbox{Id: "1"}, &api.PodSandbox{Id: "2"}
	for _, s := range []*api.PodSandbox{first, second} {
		c.Gate.shims.add(s)
		require.Empty(t, c.Gate.shims.barred(s))
	}
	c.SandboxRemoved("1")
	assert.NotEmpty(t, c.Gate.shims.barred(first))
	assert.Empty(t, c.Gate.shims.barred(second))
	c.SandboxesAre(nil)
	assert.NotEmpty(t, c.Gate.shims.barred(second))
}

// Containers that a restart of the runtime ended say nothing about hooks.
func TestANewConnectionForgetsTheExpectedHooks(t *testing.T) {
	t.Parallel()
	c := aChooser(Options{ProcRoot: t.TempDir()})
	c.Gate.breaker.begins(now0, "container", "uid")
	c.Connected("containerd", "2.4.2", 0)
	assert.Empty(t, c.Gate.breaker.gone(now0, "container"))
	assert.Empty(t, c.Gate.breaker.bars(now0, "uid"))
}
