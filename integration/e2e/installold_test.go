//go:build e2e && full

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// A node with containerd 1.7 gets the chart's manifests with the kick: the daemon says
// why there is no gate, and its own token is enough to kick the pods whose turn it is,
// though the policy denies it everything else.
func TestInstallOnContainerd17WithTheKick(t *testing.T) {
	onNode(t, "containerd@1.7", "")
	importImage(t, installImage)
	in := installChart(t, map[string]any{"kick": map[string]any{"enabled": true}})
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	var err error
	d.http, err = node.Forward(t.Context(), "127.0.0.1:9464")
	require.NoError(t, err)
	assert.Contains(t, d.status(t).Gate.WhyNot, "1.7.35")

	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", 8, herdPod(2))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 8) })
	assertPacedLives(t, lives(t, ns), 2)
	d.idle(t)
	assert.Positive(t, d.metric(t, `pod_pacemaker_kicks_total{result="done"}`), "kicks")
	assert.Zero(t, d.metric(t, `pod_pacemaker_kicks_total{result="failed"}`), "kicks that the API server denied")

	in.uninstall(t)
	eventually(t, "nothing is left on the host", func() bool { return len(in.files(t)) == 0 })
}
