//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a kubelet timeout of 15 minutes, the gate holds as many pods as start within its 12 minutes if each takes the
// startTimeout, and costs the node and exempt pods little. It measures the node's memory, and the time of pods that need
// not wait.
func TestALongGateHoldsWhatStartsByItsTimeouts(t *testing.T) {
	const count, many = 60, 15
	other, ns := namespace(t), namespace(t)
	without := rounds(t, other)
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) { config["runtimeRequestTimeout"] = "15m" }))
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil)) })
	d := startDaemon(t, "--kubelet-config", node.KubeletConfigFile())
	d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}, startTimeout: 40s}", other))
	before := available(t)
	deploy(t, ns, "herd", count, herdPod(0.1, sleeping("4s")))
	eventually(t, "many pods wait in the gate", func() bool { return d.status(t).Gate.Waiters >= many })
	waiters := d.status(t).Gate.Waiters
	each := float64(before-available(t)) / float64(waiters) / mib
	with := rounds(t, other)
	most := waiters
	eventually(t, "all pods are ready", func() bool {
		most = max(most, d.status(t).Gate.Waiters)
		return allReady(t, ns, count)
	})
	s := d.status(t)
	figure(t, "of %d pods at most %d in the gate; with %d, %.1f MiB of the node's memory each, an exempt pod is %s, without the daemon %s; %d refused",
		count, most, waiters, each, with, without, s.Refused.Sandbox+s.Refused.Container)
	assert.LessOrEqual(t, with.longerAt(heldUpRounds/2, without), heldUpMost)
	assert.LessOrEqual(t, mostStarting(t, lives(t, ns)), 2)
	for _, p := range pods(t, ns) {
		assert.Zero(t, p.Status.ContainerStatuses[0].RestartCount, p.Name)
	}
}

// available returns the bytes of memory that the node has for new work.
func available(t *testing.T) int64 {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	info, err := fs.Meminfo()
	require.NoError(t, err)
	return int64(*info.MemAvailableBytes)
}
