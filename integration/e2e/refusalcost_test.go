//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// tick is the unit of CPU time in /proc: USER_HZ, which the kernel fixes.
const tick = time.Second / 100

// runtimeCPU is the CPU time of containerd and of those that it waited for.
func runtimeCPU(t *testing.T, r *lab.Runtime) time.Duration {
	t.Helper()
	proc, err := procfs.NewProc(r.Containerd.PID())
	require.NoError(t, err)
	stat, err := proc.Stat()
	require.NoError(t, err)
	return time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * tick
}

// What containerd itself spends on each thing that it is asked for. The daemon's
// shares (plugin/refusalcost.go) come from these figures; nothing follows from their absolute size.
func TestWhatTheRuntimeSpends(t *testing.T) {
	const each = 20
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	binaries, err := lab.BuildRuntime(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	// One without a kubelet, which would take down what it does not know.
	r, err := lab.StartRuntime(t.Context(), lab.RuntimeOptions{Binaries: binaries})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Errorf("stop of the runtime: %v", err)
		}
	})
	began, before := time.Now(), runtimeCPU(t, r)
	after(t.Context(), 10*time.Second)
	idle := (runtimeCPU(t, r) - before).Seconds() / time.Since(began).Seconds()
	spent := map[string]float64{}
	spend := func(what string, do func(i int)) {
		began, before := time.Now(), runtimeCPU(t, r)
		for i := range each {
			do(i)
		}
		after(t.Context(), time.Second) // for what goes on behind the answer
		spent[what] = ((runtimeCPU(t, r) - before).Seconds() - idle*time.Since(began).Seconds()) / each
	}
	cri := r.CRI()
	configs := make([]*runtimeapi.PodSandboxConfig, each)
	sandboxes, containers := make([]string, each), make([]string, each)
	container := func(i int) *runtimeapi.CreateContainerRequest {
		return &runtimeapi.CreateContainerRequest{PodSandboxId: sandboxes[i], SandboxConfig: configs[i], Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: lab.HerdImage},
			Args: []string{"--cpu-seconds", "0"}, LogPath: "app.log", Linux: &runtimeapi.LinuxContainerConfig{},
		}}
	}
	spend("run a sandbox", func(i int) {
		configs[i] = r.SandboxConfig("spends", fmt.Sprintf("pod-%d", i), fmt.Sprintf("spends-%s", unique()))
		reply, err := cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: configs[i]})
		require.NoError(t, err)
		sandboxes[i] = reply.PodSandboxId
	})
	create := func(i int) {
		reply, err := cri.CreateContainer(t.Context(), container(i))
		require.NoError(t, err)
		containers[i] = reply.ContainerId
	}
	spend("create and remove a container", func(i int) {
		create(i)
		_, err := cri.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: containers[i]})
		require.NoError(t, err)
	})
	spend("create, start, stop and remove a container", func(i int) {
		create(i)
		_, err := cri.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: containers[i]})
		require.NoError(t, err)
		_, err = cri.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: containers[i]})
		require.NoError(t, err)
		_, err = cri.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: containers[i]})
		require.NoError(t, err)
	})
	spend("stop and remove a sandbox", func(i int) {
		_, err := cri.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandboxes[i]})
		require.NoError(t, err)
		_, err = cri.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandboxes[i]})
		require.NoError(t, err)
	})
	for what, cost := range spent {
		figure(t, "to %s costs containerd %.0f ms of CPU", what, 1000*cost)
		assert.Positive(t, cost, what)
	}
}

// shimsCPU is the CPU time of the shims that have ended, and of what they waited for:
// the run's keeper inherits and waits for them.
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

// What the daemon says that refusals cost is what containerd, its shims and all that
// these call spend more while pods are refused.
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
	after(t.Context(), 10*time.Second) // what the start left to do
	idle, idleShims := spent(span / 2)
	deploy(t, ns, "refused", waiting, herdPod(0.1))
	eventually(t, "all others wait", func() bool { return len(d.status(t).Waiting) == waiting })

	said, refusals := d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total"), d.status(t).Refused
	itself, shims := spent(span)
	said = d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total") - said
	now := d.status(t).Refused
	n := float64(now.Sandbox + now.Container - refusals.Sandbox - refusals.Container)
	cost := itself + shims - 2*(idle+idleShims)
	require.Positive(t, n, "refusals")
	assert.True(t, now.Measured, "the daemon says so from what it saw here")
	figure(t, "%.0f refusals in %s cost the node %.1f CPU-seconds, %.1f of them containerd's own; the daemon says %.1f; each %.0f and %.0f ms",
		n, span, cost, itself-2*idle, said, 1000*cost/n, 1000*said/n)
	assert.Less(t, said, 2*cost)
	assert.Greater(t, said, cost/2)
}
