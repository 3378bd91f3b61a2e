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
	"github.com/pod-pacemaker/pod-pacemaker/plugin/cgroup"
)

// runtimeCPU is the CPU time of containerd and of those that it waited for.
func runtimeCPU(t *testing.T, r *lab.Runtime) time.Duration {
	t.Helper()
	proc, err := procfs.NewProc(r.Containerd.PID())
	require.NoError(t, err)
	stat, err := proc.Stat()
	require.NoError(t, err)
	const tick = time.Second / 100 // USER_HZ, which the kernel fixes
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

// What the daemon says that refusals cost is what they cost: of the order of all CPU
// time that the node spends more while pods are refused than while they wait at the gate.
func TestRefusalsCostWhatTheDaemonSays(t *testing.T) {
	const waiting = 12
	d := startDaemon(t, "--refuse-at", "sandbox")
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	deploy(t, ns, "holds", 1, herdPod(0.1, sleeping("1h")))
	eventually(t, "the slot is taken", func() bool { return len(d.status(t).Starting) == 1 })
	used := func() float64 {
		cpu, err := cgroup.Reader{Root: "/sys/fs/cgroup"}.CPUSeconds(node.Cgroup)
		require.NoError(t, err)
		return cpu
	}
	const span = 60 * time.Second
	after(t.Context(), 10*time.Second) // what the start left to do
	before := used()
	after(t.Context(), span/2)
	idle := 2 * (used() - before)
	deploy(t, ns, "refused", waiting, herdPod(0.1))
	eventually(t, "all others wait", func() bool { return len(d.status(t).Waiting) == waiting })

	before = used()
	itself := runtimeCPU(t, node.Runtime)
	said, refusals := d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total"), d.status(t).Refused
	after(t.Context(), span)
	cost := used() - before - idle
	said = d.metric(t, "pod_pacemaker_refusal_cpu_seconds_total") - said
	now := d.status(t).Refused
	t.Logf("idle %.2f, before %.2f, cost %.2f; containerd itself %.2f CPU-seconds; %+v", idle, before, cost, (runtimeCPU(t, node.Runtime) - itself).Seconds(), now)
	n := now.Sandbox + now.Container - refusals.Sandbox - refusals.Container
	require.Positive(t, n, "refusals")
	figure(t, "%d refusals in %s cost the node %.1f CPU-seconds, the daemon says %.1f; each %.0f and %.0f ms", n, span, cost, said,
		1000*cost/float64(n), 1000*said/float64(n))
	assert.InDelta(t, 1, said/cost, 0.6, "said/measured")
}
