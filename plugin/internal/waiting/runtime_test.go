package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// containerd that holds up statistics of a node while a hook waits, and containerd that keeps refused sandboxes.
func TestFaultsOfRuntimes(t *testing.T) {
	t.Parallel()
	const holdsUp, unknown = "holds up statistics", "not known"
	for _, c := range []struct{ name, version, barsGate, keepsSandboxes string }{
		{"containerd", "v2.4.2", "", ""},
		{"containerd", "2.5.0-beta.0", "", ""},
		{"containerd", "3.0.0", "", ""},
		{"containerd", "1.7.35", holdsUp, ""},
		{"containerd", "2.0.14", holdsUp, "2.2.6 does not"},
		{"containerd", "2.1.9", holdsUp, "2.2.6 does not"},
		{"containerd", "2.2.5", holdsUp, "2.2.6 does not"},
		{"containerd", "v2.2.5-k3s1", holdsUp, "2.2.6 does not"},
		{"containerd", "2.2.6", holdsUp, ""},
		{"containerd", "2.2.10", holdsUp, ""},
		{"containerd", "2.3.0-rc.1", holdsUp, "2.3.3 does not"},
		{"containerd", "v2.3.1", holdsUp, "2.3.3 does not"},
		{"containerd", "2.3.2", "", "2.3.3 does not"},
		{"containerd", "2.3.3", "", ""},
		{"containerd", "2.3.7+unknown", "", ""},
		{"containerd", "", unknown, unknown},
		{"containerd", "unknown", unknown, unknown},
		{"cri-o", "1.35.0", "not known to support", "not known to remove refused sandboxes"},
	} {
		gate, sandbox := RuntimeFaults(c.name, c.version)
		for want, got := range map[*string]string{&c.barsGate: gate, &c.keepsSandboxes: sandbox} {
			assert.Contains(t, got, *want, "%s %s", c.name, c.version)
			assert.Equal(t, *want == "", got == "", "%s %s", c.name, c.version)
		}
	}
}
