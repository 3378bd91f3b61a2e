package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

func TestRuntimesThatKeepRefusedSandboxes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version string
		want          string
	}{
		{"containerd", "v2.4.2", ""},
		{"containerd", "2.5.0-beta.0", ""},
		{"containerd", "3.0.0", ""},
		{"containerd", "1.7.35", ""},
		{"containerd", "2.0.14", "2.4 does not"},
		{"containerd", "2.1.9", "2.4 does not"},
		{"containerd", "2.2.5", "2.2.6 does not"},
		{"containerd", "v2.2.5-k3s1", "2.2.6 does not"},
		{"containerd", "2.2.6", ""},
		{"containerd", "2.2.10", ""},
		{"containerd", "2.3.0-rc.1", "2.3.3 does not"},
		{"containerd", "2.3.2", "2.3.3 does not"},
		{"containerd", "2.3.3", ""},
		{"containerd", "2.3.7+unknown", ""},
		{"containerd", "", "not known"},
		{"containerd", "unknown", "not known"},
		{"cri-o", "1.35.0", "not known to take refused sandboxes down"},
	} {
		got := keepsRefused(c.name, c.version)
		if c.want == "" {
			assert.Empty(t, got, "%s %s", c.name, c.version)
		} else {
			assert.Contains(t, got, c.want, "%s %s", c.name, c.version)
		}
	}
}

func TestNothingIsRefusedAtTheSandboxWhereTheRuntimeKeepsIt(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.RefuseAt = RefuseSandbox }),
		onRuntime(func(o *runtimetest.Options) { o.Version = "2.2.5" }))
	n.occupy("holder")
	for i := range 4 {
		p := n.pod(fmt.Sprintf("crowd-%d", i)).runs()
		_, err := p.create("app")
		assert.ErrorContains(t, err, "waiting to start: Concurrency", "there is no gate on this runtime either") //nolint:testifylint // the others are of interest too
	}
	assert.Zero(t, n.p.refusedSandboxes.Load())
	assert.EqualValues(t, 4, n.p.refusedContainers.Load())
	assert.Contains(t, n.p.refusals.runtime.barred(), "containerd 2.2.5 keeps what is left")
	assert.False(t, n.p.refusals.atSandbox(time.Now(), RefuseSandbox))
}
