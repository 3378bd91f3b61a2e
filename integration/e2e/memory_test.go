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

// Bounds of the daemon's memory.
const (
	// peakRSS is the DaemonSet's memory limit. The daemon stays below it whatever it reads. largePod
	// bounds the bytes of heap that each further pod adds. The first one adds more: while a watch
	// lasts, client-go keeps a buffer of up to four times the largest event of the watch (1.2 MiB
	// for 400 KiB, by a heap profile).
	peakRSS  = 256 * mib
	largePod = 16 << 10
	// largePods is the number of pods. Each has largeMetadata bytes of labels and as many of
	// annotations; the API server allows 256 KiB of annotations.
	largePods     = 110
	largeMetadata = 200 << 10
)

// Of 110 pods with 200 KiB of labels and 200 KiB of annotations each, the last 55 add less than 16
// KiB each to the daemon's heap, with a StartPolicy that selects them by a label. A daemon that
// reads all 110 at its start keeps no more. The API server and containerd both report the pods. The
// test creates their containers itself, because kubelet could not even list objects of that size.
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
	largePodsIn(t, ns, largePods/2-1)
	// The daemon reads these pods from a list, and begins another watch. The next pod is the first one of that.
	d.enforce(t, "large", `{selector: {terms: [{podSelector: {matchLabels: {app: large}}}]}, limits: {running: {pods: 1000}}}`)
	eventually(t, "the policy counts the pods of the list", admitted(largePods/2-1))
	largePodsIn(t, ns, 1)
	eventually(t, "the policy counts the first half", admitted(largePods/2))
	half := d.weighPods(t, before, largePods/2, "reported one by one, and by a list")
	largePodsIn(t, ns, largePods-largePods/2)
	eventually(t, "the policy counts all pods", admitted(largePods))
	told := d.weighPods(t, half, largePods-largePods/2, "reported one by one")
	assert.Less(t, told.heap-half.heap, float64((largePods-largePods/2)*largePod), "bytes of heap that the second half added")

	require.NoError(t, d.Restart(t.Context()))
	eventually(t, "the policy counts all pods", admitted(largePods))
	next := d.weighPods(t, before, largePods, "all reported to the next daemon at once")
	assert.Less(t, next.heap-told.heap, float64(largePods*largePod), "additional bytes of heap of the next daemon")
}

// weighPods returns the daemon's memory once it has settled, reports what the pods have added since
// before, and checks the peak.
func (d *daemon) weighPods(t *testing.T, before memory, pods int, how string) (now memory) {
	t.Helper()
	now = d.settled(t)
	figure(t, "%d pods of %d KiB of labels and as many of annotations, %s: %s; heap %.1f KiB a pod",
		pods, largeMetadata>>10, how, now, (now.heap-before.heap)/float64(pods)/1024)
	assert.Less(t, now.peak, float64(peakRSS), "peak of resident bytes")
	return now
}

// largePodsIn creates n large pods on the node and runs their containers.
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

// runSandbox creates a sandbox with a running container, and removes both with the test.
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

// largePodOf returns a pod of the node with large labels and annotations.
func largePodOf(node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "large-" + unique(), Labels: map[string]string{"app": "large"}, Annotations: map[string]string{},
		},
		Spec: herdPod(0),
	}
	pod.Spec.NodeName = node
	for size := 0; size < largeMetadata; {
		// A label value is at most 63 bytes, and the prefix of a label key is a domain of at most
		// 253.
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

// memory is what the daemon takes, in bytes: the heap after the last garbage collection, and the
// kernel's present count and peak.
type memory struct{ heap, pss, peak float64 }

func (m memory) String() string {
	return fmt.Sprintf("heap %.2f MiB, PSS %.1f MiB, at most %.1f MiB resident", m.heap/mib, m.pss/mib, m.peak/mib)
}

// settled returns the daemon's memory after several garbage collections, when the kernel has got
// back the free memory. The heap is the least that a collection left.
func (d *daemon) settled(t *testing.T) memory {
	t.Helper()
	const collected, collections = "go_memstats_last_gc_time_seconds", 6
	heap := math.Inf(1)
	for range collections {
		last := d.metric(t, collected)
		eventually(t, "the collector has run", func() bool { return d.metric(t, collected) > last })
		heap = min(heap, d.metric(t, "go_memstats_next_gc_bytes")/2) // the collector lets the heap double
	}
	after(t.Context(), 20*time.Second)
	now, err := d.process(t).ProcSMapsRollup()
	require.NoError(t, err)
	return memory{heap: heap, pss: float64(now.Pss), peak: d.peakMemory(t)}
}

// peakMemory returns the kernel's peak of the daemon's resident bytes.
func (d *daemon) peakMemory(t *testing.T) float64 {
	t.Helper()
	status, err := d.process(t).NewStatus()
	require.NoError(t, err)
	return float64(status.VmHWM)
}

func (d *daemon) process(t *testing.T) procfs.Proc {
	t.Helper()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	process, err := fs.Proc(d.PID())
	require.NoError(t, err)
	return process
}
