//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a kubelet that waits for 15 minutes, as many pods of a full node as have their turn within half of the gate's
// time wait there: what such a number costs the node's memory, and pods that need not wait.
func TestANodeFullOfPodsWaitsInALongGate(t *testing.T) {
	const count, ratioBound = 100, 1.5
	other, ns := namespace(t), namespace(t)
	without := medianRound(t, other)
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) { config["runtimeRequestTimeout"] = "15m" }))
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil)) })
	d := startDaemon(t, "--kubelet-config", node.KubeletConfigFile())
	d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}", other))
	before := available(t)
	deploy(t, ns, "herd", count, herdPod(0.1, sleeping("5s")))
	most := 0
	eventually(t, "all of them are made", func() bool {
		s := d.status(t)
		most = max(most, s.Gate.Waiters)
		return s.Gate.Waiters+len(begun(t, ns)) >= count || most > s.Gate.Waiters+5
	})
	s := d.status(t)
	each := float64(before-available(t)) / float64(s.Gate.Waiters) / mib
	with := medianRound(t, other)
	figure(t, "%d of %d pods in the gate at once, %.1f MiB of the node's memory each; an exempt pod is made and removed in %.2f s, %.2f s without the daemon; %d refused",
		most, count, each, with.Seconds(), without.Seconds(), s.Refused.Sandbox+s.Refused.Container)
	assert.Less(t, with.Seconds()/without.Seconds(), ratioBound)
	polled(t, time.Second, "all are ready", func() bool { return allReady(t, ns, count) })
	assert.LessOrEqual(t, mostStarting(lives(t, ns)), 2)
	for _, p := range pods(t, ns) {
		assert.LessOrEqual(t, p.Status.ContainerStatuses[0].RestartCount, int32(0), p.Name)
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
