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

// sample puts a config of deploy/samples in force on the node, which gets the label
// that it selects.
func (d *daemon) sample(t *testing.T, name, label, value string) {
	t.Helper()
	file := repository("deploy", "samples", name+".yaml")
	kubectl(t, "apply", "-f", file)
	t.Cleanup(func() { kubectlLater(t, "delete", "-f", file) })
	kubectl(t, "label", "node", node.NodeName, label+"="+value)
	t.Cleanup(func() { kubectlLater(t, "label", "node", node.NodeName, label+"-") })
	eventually(t, "the sample is in force", func() bool { return d.status(t).Config.Name == name })
}

// The example for JVM nodes: pods that want a core for seconds, and that a liveness
// probe kills when they starve. One start for every two cores.
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
	assert.LessOrEqual(t, mostStarting(all), limit, "pods between the start of their process and ready")
	assert.Zero(t, restarted(all), "killed by probes")
	figure(t, "%d pods of %.0f CPU-seconds, each on one core: %d at a time, all ready after %.1f s, 0 killed",
		jvms, cpuSeconds, limit, lastReady(all).Sub(begin).Seconds())
}

// The example for big nodes with mixed work: the number is found, so that pods that
// sleep while they start do not hold up the others, and none that burns is killed.
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
	assert.Greater(t, most, least, "the number has grown while the node had CPU to spare")
	assert.Greater(t, mostStarting(all), least, "and more started at a time")
	figure(t, "%d pods that sleep for %s and %d of 2 CPU-seconds: from %d to %d at a time, %d starting at most, all ready after %.1f s, 0 killed",
		each, sleep, each, least, most, mostStarting(all), took.Seconds())
}

// The example for image pull storms, on a node that pulls in parallel: never more
// than two images at a time; more of them without it, in the same run.
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
	kubectl(t, "patch", "pacemakerconfig", "image-pulls", "--type", "merge", "-p", `{"spec":{"mode":"Off"}}`)
	eventually(t, "nothing is held", func() bool { return d.status(t).Config.Mode == "Off" })
	storm, without := pullStorm(t, half, half)
	assert.LessOrEqual(t, paced, limit)
	assert.Positive(t, refused, "those too many are refused before they pull")
	assert.Greater(t, storm, limit, "or this tells nothing")
	figure(t, "%d pods with an image each: %d at most are pulled at a time after %d refusals, all ready after %.1f s; mode Off: %d at a time, %.1f s",
		half, paced, refused, with.Seconds(), storm, without.Seconds())
}

// pullStorm starts a pod of each image, and gives how many were pulled at a time,
// and after what time all were ready.
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

// onParallelPuller runs the rest of the test on a node whose kubelet pulls as many
// images at a time as there are.
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
