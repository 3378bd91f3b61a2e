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

// With a kubelet that waits for 15 minutes, as many pods wait in the gate as start within a minute, a twelfth
// of its time: what they cost the node's memory, and pods that need not wait.
func TestALongGateHoldsWhatStartsInAMinute(t *testing.T) {
	const count, many, ratioBound = 60, 15, 1.5
	other, ns := namespace(t), namespace(t)
	without := medianRound(t, other)
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) { config["runtimeRequestTimeout"] = "15m" }))
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil)) })
	d := startDaemon(t, "--kubelet-config", node.KubeletConfigFile())
	d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}", other))
	before := available(t)
	deploy(t, ns, "herd", count, herdPod(0.1, sleeping("4s")))
	eventually(t, "many wait in the gate", func() bool { return d.status(t).Gate.Waiters >= many })
	waiters := d.status(t).Gate.Waiters
	each := float64(before-available(t)) / float64(waiters) / mib
	with := medianRound(t, other)
	most := waiters
	eventually(t, "all are ready", func() bool {
		most = max(most, d.status(t).Gate.Waiters)
		return allReady(t, ns, count)
	})
	s := d.status(t)
	figure(t, "of %d pods at most %d in the gate; with %d, %.1f MiB of the node's memory each, an exempt pod is made and removed in %.2f s, %.2f s without the daemon; %d refused",
		count, most, waiters, each, with.Seconds(), without.Seconds(), s.Refused.Sandbox+s.Refused.Container)
	assert.Less(t, with.Seconds()/without.Seconds(), ratioBound)
	assert.LessOrEqual(t, mostStarting(lives(t, ns)), 2)
	for _, p := range pods(t, ns) {
		assert.Zero(t, p.Status.ContainerStatuses[0].RestartCount, p.Name)
	}
}

// available gives the bytes of memory that the node has for new work.
func available(t *testing.T) int64 {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	info, err := fs.Meminfo()
	require.NoError(t, err)
	return int64(*info.MemAvailableBytes)
}
