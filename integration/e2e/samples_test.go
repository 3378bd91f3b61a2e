//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// sample applies a config of deploy/samples, and gives the node the label that it selects.
func (d *daemon) sample(t *testing.T, name, label, value string) {
	t.Helper()
	file := repository("deploy", "samples", name+".yaml")
	kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { kubectlLater(t, "delete", "-f", file) })
	kubectl(t, "label", "node", node.NodeName, label+"="+value)
	t.Cleanup(func() { kubectlLater(t, "label", "node", node.NodeName, label+"-") })
	eventually(t, "the sample is in force", func() bool { return d.status(t).Config.Name == name })
}

// The sample for JVM nodes admits one start for every two cores: no liveness probe kills a pod,
// though each wants a core for seconds.
func TestSampleForJVMNodes(t *testing.T) {
	const jvms, cpuSeconds = 8, 4.0
	d := startDaemon(t)
	d.sample(t, "jvm-nodes", "workload", "jvm")
	limit := max(1, runtime.NumCPU()/2)
	require.Equal(t, limit, d.status(t).Limit)
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "jvm", jvms, herdPod(cpuSeconds, withLiveness))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, jvms) })
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready")
	assert.Zero(t, restarted(all), "killed by probes")
	figure(t, "%d pods of %.0f CPU-seconds, each on one core: %d at a time, all ready after %.1f s, 0 killed",
		jvms, cpuSeconds, limit, lastReady(all).Sub(begin).Seconds())
}

// The sample for big nodes with mixed work finds the number of starts: sleeping pods do not hold up
// the others, and no probe kills a burning pod.
func TestSampleForBigNodes(t *testing.T) {
	const each, sleep = 12, 15 * time.Second
	d := startDaemon(t)
	d.sample(t, "big-nodes", "node-size", "big")
	least := d.status(t).Limit
	assert.GreaterOrEqual(t, least, 4)
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "idle", each, herdPod(0.1, sleeping(sleep.String())))
	deploy(t, ns, "busy", each, herdPod(2, withLiveness))
	most := least
	eventually(t, "all pods are ready", func() bool {
		most = max(most, d.status(t).Limit)
		return allReady(t, ns, 2*each)
	})
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	took := lastReady(all).Sub(begin)
	assert.Zero(t, restarted(all), "killed by probes")
	assert.Greater(t, most, least, "the highest number of starts: it grows while the node has CPU to spare")
	assert.Greater(t, mostStarting(t, all), least, "pods between the start of their process and ready")
	figure(t, "%d pods that sleep for %s and %d of 2 CPU-seconds: from %d to %d at a time, %d starting at most, all ready after %.1f s, 0 killed",
		each, sleep, each, least, most, mostStarting(t, all), took.Seconds())
}

// The sample for image pull storms, on a node that pulls in parallel, allows two image pulls at a
// time; without it, more images are pulled at a time in the same run.
func TestSampleForImagePulls(t *testing.T) {
	onParallelPuller(t)
	startRegistry(t)
	d := startDaemon(t)
	d.sample(t, "image-pulls", "images", "large")
	limit := d.status(t).PullingLimit
	require.Equal(t, 2, limit)
	const half = registryImages / 2
	paced, with := pullStorm(t, 0, half)
	d.idle(t)
	refused := d.status(t).Refused.Sandbox
	kubectl(t, "patch", "pacemakerconfig", "image-pulls", "--type", "merge", "-p", `{"spec":{"mode":"Disabled"}}`)
	eventually(t, "nothing is held", func() bool { return d.status(t).Config.Mode == "Disabled" })
	storm, without := pullStorm(t, half, half)
	assert.LessOrEqual(t, paced, limit)
	assert.Positive(t, refused, "surplus pods that are refused before they pull")
	assert.Greater(t, storm, limit, "images pulled at a time without the limit")
	figure(t, "%d pods with an image each: %d at most are pulled at a time after %d refusals, all ready after %.1f s; mode Disabled: %d at a time, %.1f s",
		half, paced, refused, with.Seconds(), storm, without.Seconds())
}

// pullStorm starts a pod for each image. It returns the highest number of simultaneous pulls, and
// the time until all pods are ready.
func pullStorm(t *testing.T, first, count int) (most int, took time.Duration) {
	t.Helper()
	ns := namespace(t)
	begin := time.Now()
	var names []string
	for i := range count {
		image := fmt.Sprintf("herd-%d", first+i)
		names = append(names, image)
		createPod(t, ns, image, herdPod(0.1, func(spec *corev1.PodSpec) {
			spec.Containers[0].Image = registryAddress + "/" + image + ":1"
			spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
		}))
	}
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, count) })
	took = time.Since(begin)
	log, err := os.ReadFile(filepath.Join(node.LogDir(), "registry.log"))
	require.NoError(t, err)
	return mostPulling(t, string(log), names), took
}

// onParallelPuller runs the rest of the test on a node whose kubelet pulls all images at the same
// time.
func onParallelPuller(t *testing.T) {
	t.Helper()
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	binaries, err := lab.Build(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	other, err := lab.StartCluster(t.Context(), lab.ClusterOptions{
		RuntimeOptions: lab.RuntimeOptions{Binaries: binaries},
		KubeletConfig:  func(config map[string]any) { config["serializeImagePulls"] = false },
	})
	require.NoError(t, err)
	usual := node
	node = other
	t.Cleanup(func() {
		node = usual
		assert.NoError(t, other.Stop(context.Background()), "stop of the cluster")
	})
	kubectl(t, "apply", "--server-side", "-k", repository("deploy", "crds"))
}
