package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
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
		{"containerd", "2.0.14", "2.2.6 does not"},
		{"containerd", "2.1.9", "2.2.6 does not"},
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
		{"cri-o", "1.35.0", "not known to remove refused sandboxes"},
	} {
		_, got := RuntimeFaults(c.name, c.version)
		if c.want == "" {
			assert.Empty(t, got, "%s %s", c.name, c.version)
		} else {
			assert.Contains(t, got, c.want, "%s %s", c.name, c.version)
		}
	}
}
