//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// tick is the unit of CPU time in /proc, USER_HZ, which the kernel fixes.
const tick = time.Second / 100

// runtimeCPU returns the CPU time of containerd and of the children that it has waited for.
func runtimeCPU(t *testing.T, r *lab.Runtime) time.Duration {
	t.Helper()
	proc, err := procfs.NewProc(r.Containerd.PID())
	require.NoError(t, err)
	stat, err := proc.Stat()
	require.NoError(t, err)
	return time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * tick
}

// shimsCPU returns the CPU time of the ended shims and of their children: the run's keeper inherits
// them and waits for them.
func shimsCPU(t *testing.T, r *lab.Runtime) time.Duration {
	t.Helper()
	containerd, err := procfs.NewProc(r.Containerd.PID())
	require.NoError(t, err)
	stat, err := containerd.Stat()
	require.NoError(t, err)
	keeper, err := procfs.NewProc(stat.PPID)
	require.NoError(t, err)
	stat, err = keeper.Stat()
	require.NoError(t, err)
	return time.Duration(stat.CUTime+stat.CSTime) * tick
}

// The cost of refusals that the daemon reports is the additional CPU time of containerd, its shims
// and their children while pods are refused.
func TestRefusalsCostWhatTheDaemonSays(t *testing.T) {
	const waiting = 12
	d := startDaemon(t, "--refuse-at", "sandbox")
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	deploy(t, ns, "holds", 1, herdPod(0.1, sleeping("1h")))
	eventually(t, "the slot is taken", func() bool { return len(d.status(t).Starting) == 1 })
	const span = 60 * time.Second
	used := func() (itself, shims time.Duration) { return runtimeCPU(t, node.Runtime), shimsCPU(t, node.Runtime) }
	spent := func(span time.Duration) (itself, shims float64) {
		itself0, shims0 := used()
		after(t.Context(), span)
		itself1, shims1 := used()
		return (itself1 - itself0).Seconds(), (shims1 - shims0).Seconds()
	}
	after(t.Context(), 10*time.Second) // the rest of the start's work
	idle, idleShims := spent(span / 2)
	deploy(t, ns, "refused", waiting, herdPod(0.1))
	eventually(t, "all other pods wait", func() bool { return len(d.status(t).Waiting) == waiting })

	said, refusals := d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total"), d.status(t).Refused
	itself, shims := spent(span)
	said = d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total") - said
	now := d.status(t).Refused
	n := float64(now.Sandbox + now.Container - refusals.Sandbox - refusals.Container)
	cost := itself + shims - 2*(idle+idleShims)
	require.Positive(t, n, "refusals")
	figure(t, "%.0f refusals in %s cost the node %.1f CPU-seconds, %.1f of them containerd's own; the daemon says %.1f; each %.0f and %.0f ms",
		n, span, cost, itself-2*idle, said, 1000*cost/n, 1000*said/n)
	assert.Less(t, said, 2*cost)
	assert.Greater(t, said, cost/2)
}
