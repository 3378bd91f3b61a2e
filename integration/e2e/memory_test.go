//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// What the daemon may take of its node.
const (
	// peakRSS is the DaemonSet's limit, below which it stays whatever it reads; largePod is how
	// much each further pod adds, in bytes of heap. The first one adds more: for as long as a watch
	// lasts, client-go keeps a buffer of up to four times the largest event that the watch has told
	// (1.2 MiB of 400 KiB, by a heap profile).
	peakRSS  = 256 * mib
	largePod = 16 << 10
	// largePods is how many pods there are, with so much in labels, and in annotations,
	// of which the API server allows 256 KiB.
	largePods     = 110
	largeMetadata = 200 << 10
)

// Of 110 pods, each with 200 KiB of labels and 200 KiB of annotations, the last 55 add less than 16 KiB each to
// the daemon's memory, with a StartPolicy that selects them by a label; a daemon that reads all 110 at its start
// keeps no more. The API server tells of them, and containerd does. Their containers are made in the place of
// kubelet, which could not even list so much.
func TestPodsOfAnySizeCostLittleMemory(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{}")
	before := d.settled(t)
	figure(t, "without pods, while its metrics are read: %s", before)

	require.NoError(t, node.Kubelet.Stop(t.Context()))
	t.Cleanup(func() {
		ctx := context.Background()
		assert.NoError(t, node.Kubelet.Start(ctx))
		assert.NoError(t, node.AwaitReady(ctx))
	})
	ns := namespace(t)
	admitted := func(n int) func() bool {
		return func() bool { return int(d.group(t, "large", "").Used.Running.Pods) == n }
	}
	largePodsIn(t, ns, largePods/2)
	// Of these pods the facts are taken from a list.
	d.enforce(t, "large", `{selector: {terms: [{podSelector: {matchLabels: {app: large}}}]}, limits: {running: {pods: 1000}}}`)
	eventually(t, "the policy counts them", admitted(largePods/2))
	half := d.weighPods(t, before, largePods/2, "they were told of one by one, and by a list")
	largePodsIn(t, ns, largePods-largePods/2)
	eventually(t, "the policy counts them all", admitted(largePods))
	told := d.weighPods(t, half, largePods-largePods/2, "they were told of one by one")
	assert.Less(t, told.heap-half.heap, float64((largePods-largePods/2)*largePod), "bytes of heap that the further pods added")

	require.NoError(t, d.Restart(t.Context()))
	eventually(t, "the policy counts them all", admitted(largePods))
	next := d.weighPods(t, before, largePods, "the next daemon was told of them at once")
	assert.Less(t, next.heap-told.heap, float64(largePods*largePod), "bytes of heap of the next daemon above those of the one before")
}

// weighPods gives the daemon's memory once that has settled, tells what so many pods have added to what it was
// before, and judges the most it took.
func (d *daemon) weighPods(t *testing.T, before memory, pods int, how string) (now memory) {
	t.Helper()
	now = d.settled(t)
	figure(t, "%d pods of %d KiB of labels and as much of annotations, %s: %s; heap %.1f KiB a pod",
		pods, largeMetadata>>10, how, now, (now.heap-before.heap)/float64(pods)/1024)
	assert.Less(t, now.peak, float64(peakRSS), "bytes resident at most")
	return now
}

// largePodsIn makes so many pods of the node that are all labels and annotations, and runs
// their containers.
func largePodsIn(t *testing.T, ns string, n int) {
	t.Helper()
	for range n {
		pod, err := node.Client().CoreV1().Pods(ns).Create(t.Context(), largePodOf(node.NodeName), metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			none := int64(0)
			assert.NoError(t, node.Client().CoreV1().Pods(ns).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}))
		})
		config := node.SandboxConfig(ns, pod.Name, string(pod.UID))
		config.Linux.SecurityContext.NamespaceOptions.Network, config.Hostname = runtimeapi.NamespaceMode_NODE, ""
		maps.Copy(config.Labels, pod.Labels)
		config.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
		maps.Copy(config.Annotations, pod.Annotations)
		runSandbox(t, config)
	}
}

// runSandbox makes a sandbox with a container that runs, and removes both with the test.
func runSandbox(t *testing.T, config *runtimeapi.PodSandboxConfig) {
	t.Helper()
	cri := node.CRI()
	sandbox, err := cri.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	require.NoError(t, err)
	t.Cleanup(func() {
		id := sandbox.PodSandboxId
		_, err := cri.StopPodSandbox(context.Background(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		assert.NoError(t, err)
		_, err = cri.RemovePodSandbox(context.Background(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
		assert.NoError(t, err)
	})
	made, err := cri.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config, Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: lab.HerdImage},
			Args: []string{"--cpu-seconds", "0", "--port", "0"}, LogPath: "app.log", Linux: &runtimeapi.LinuxContainerConfig{},
		},
	})
	require.NoError(t, err)
	_, err = cri.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: made.ContainerId})
	require.NoError(t, err)
}

// largePodOf is a pod of the node that is all labels and annotations.
func largePodOf(node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "large-" + unique(), Labels: map[string]string{"app": "large"}, Annotations: map[string]string{},
		},
		Spec: herdPod(0),
	}
	pod.Spec.NodeName = node
	for size := 0; size < largeMetadata; {
		// A label takes no more than this; the part before the slash is a domain.
		key := strings.Repeat(strings.Repeat("a", 61)+".", 4) + "com/" + fmt.Sprintf("%063d", len(pod.Labels))
		value := strings.Repeat("v", 63)
		pod.Labels[key] = value
		size += len(key) + len(value)
	}
	for n := range 10 {
		pod.Annotations[fmt.Sprintf("example.com/%d", n)] = strings.Repeat("v", largeMetadata/10)
	}
	return pod
}

// memory is what the daemon takes: what the last garbage collection left, and what the
// kernel counts now and has counted at most. In bytes.
type memory struct{ heap, pss, peak float64 }

func (m memory) String() string {
	return fmt.Sprintf("heap %.2f MiB, PSS %.1f MiB, at most %.1f MiB resident", m.heap/mib, m.pss/mib, m.peak/mib)
}

// settled gives what the daemon takes once the collector has run some times, the least that
// it left, and the kernel has got back what is free.
func (d *daemon) settled(t *testing.T) memory {
	t.Helper()
	const collected, collections = "go_memstats_last_gc_time_seconds", 6
	heap := math.Inf(1)
	for range collections {
		last := d.metric(t, collected)
		eventually(t, "the collector has run", func() bool { return d.metric(t, collected) > last })
		heap = min(heap, d.metric(t, "go_memstats_next_gc_bytes")/2) // the collector lets it double
	}
	after(t.Context(), 20*time.Second)
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	process, err := fs.Proc(d.PID())
	require.NoError(t, err)
	now, err := process.ProcSMapsRollup()
	require.NoError(t, err)
	status, err := process.NewStatus()
	require.NoError(t, err)
	return memory{heap: heap, pss: float64(now.Pss), peak: float64(status.VmHWM)}
}
