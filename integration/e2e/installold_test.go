//go:build e2e && full

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// On a node with containerd 1.7 and the chart's manifests, the daemon says why it uses no gate, and
// paces a herd by refusing.
func TestInstallOnContainerd17(t *testing.T) {
	onNode(t, "containerd@1.7", "")
	importImage(t, installImage)
	in := installChart(t, nil)
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	var err error
	d.http, err = node.Forward(t.Context(), chartAddress)
	require.NoError(t, err)
	assert.Contains(t, d.status(t).Gate.WhyNot, "1.7.35")

	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", 8, herdPod(2))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 8) })
	assertPacedLives(t, lives(t, ns), 2)
	d.idle(t)
	s := d.status(t)
	assert.Positive(t, s.Refused.Sandbox+s.Refused.Container, "refusals")

	in.uninstall(t)
	eventually(t, "nothing is left on the host", func() bool { return len(in.files(t)) == 0 })
}
