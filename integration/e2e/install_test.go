//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// Names and files that the chart installs in this scenario.
const (
	installName  = "pod-pacemaker"
	installImage = "pod-pacemaker.local/pod-pacemaker:e2e"
	startupTaint = "pod-pacemaker.io/not-ready"
	chartAddress = "127.0.0.1:19464" // address of metrics and page
)

// install is the installed chart.
type install struct {
	dir      string // folder of all its files on the host
	manifest string
}

// The chart is installed, and its daemon removes the node's startup taint, paces a herd, is
// replaced and is removed, which leaves nothing on the host.
func TestInstallPaceAndUninstall(t *testing.T) {
	importImage(t, installImage)
	taintNode(t)
	in := installChart(t, map[string]any{
		"waitingRoom":   defaultRoom(),
		"startupTaint":  map[string]any{"enabled": true},
		"kubeletConfig": []any{"/nowhere/kubelet.yaml", node.KubeletConfigFile()},
	})
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	eventually(t, "the startup taint is gone", func() bool { return !tainted(t, startupTaint) })
	in.assertHook(t)
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	eventually(t, "the daemon is ready", func() bool { return d.status(t).Ready })
	assert.Empty(t, d.status(t).Gate.WhyNot)
	eventually(t, "the waiting room is installed", func() bool { return d.status(t).Room.Installed })
	assert.Equal(t, "auto", d.status(t).Room.Use)
	assert.Equal(t, "10-lab.conflist", d.status(t).Room.Source)
	assert.Equal(t, 96*time.Second, d.status(t).Gate.TimeoutSeconds.Duration(), "0.8 of kubelet's default, from the kubelet configuration that exists")
	in.assertPage(t)
	assertProbed(t)

	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", 6, herdPod(1))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 6) })
	assert.LessOrEqual(t, mostStarting(t, lives(t, ns)), 2, "pods between the start of their process and ready")
	d.idle(t)
	assertTaintPolicy(t)

	before := in.hook(t)
	in.replacePod(t)
	assert.True(t, os.SameFile(before, in.hook(t)), "the hook was removed while the pod was replaced")
	eventually(t, "the next daemon is ready", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Ready
	})

	in.uninstall(t)
	eventually(t, "nothing is left on the host", func() bool { return len(in.files(t)) == 0 })
	assertNoRoom(t)
}

// defaultRoom returns the values of a waiting room in the node's folders, on as by default.
func defaultRoom() map[string]any {
	configs, plugins := roomFolders()
	return map[string]any{"confDir": configs, "binDir": plugins}
}

// otherTaint is a taint that the daemon does not own.
const otherTaint = "e2e.pod-pacemaker.io/other"

// importImage builds the image of the Containerfile from the binaries that `make build` left, and
// imports it into the node under a name.
func importImage(t *testing.T, name string) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, images.FromContainerfile(name, repository(), tar))
	out, err := node.CTR(t.Context(), "images", "import", "--local", tar)
	require.NoError(t, err, "%s", out)
	eventually(t, "CRI lists the image", func() bool {
		reply, err := node.Images().ImageStatus(t.Context(), &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		return err == nil && reply.GetImage() != nil
	})
}

// installChart renders the chart for this node with additional values, and applies it. The daemon has no waiting room
// unless the values ask for one.
func installChart(t *testing.T, more map[string]any) *install {
	t.Helper()
	dir, err := os.MkdirTemp(node.Dir, "in")
	require.NoError(t, err)
	removeRoomLater(t)
	in := &install{dir: dir, manifest: filepath.Join(t.TempDir(), "chart.yaml")}
	image, tag, _ := strings.Cut(installImage, ":")
	values := map[string]any{
		"image":     map[string]any{"repository": image, "tag": tag, "pullPolicy": "Never"},
		"namespace": map[string]any{"create": true},
		// The CRDs are shared by all scenarios.
		"crds":       map[string]any{"install": false},
		"nri":        map[string]any{"socket": node.NRISocket},
		"containerd": map[string]any{"state": filepath.Join(node.Dir, "containerd", "state")},
		"paths":      map[string]any{"gate": dir + "/bin", "run": dir + "/run", "state": dir + "/state"},
		"apiServer":  map[string]any{"host": lab.NodeIP, "port": "6443"},
		"log":        map[string]any{"level": "debug", "format": "text"},

		"waitingRoom": map[string]any{"mode": "off"},
	}
	maps.Copy(values, more)
	files, err := chart.Render(chart.Release{Name: installName, Namespace: installName}, values)
	require.NoError(t, err)
	var all strings.Builder
	all.WriteString(files["namespace.yaml"])
	delete(files, "namespace.yaml")
	delete(files, "podmonitor.yaml") // its CRD comes with Prometheus' operator
	for _, text := range files {
		all.WriteString("\n---\n" + text)
	}
	require.NoError(t, os.WriteFile(in.manifest, []byte(all.String()), 0o600))
	// Other scenarios may have applied the rights of deploy/base, where some objects have the same
	// names.
	out, err := node.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", in.manifest)
	t.Cleanup(func() {
		if t.Failed() {
			in.logPods(t)
		}
		if out, err := node.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", in.manifest); err != nil {
			t.Errorf("delete of the chart: %v\n%s", err, out)
		}
	})
	require.NoError(t, err, "%s", out)
	return in
}

// logPods logs the pods and the daemon's log of a failed test.
func (in *install) logPods(t *testing.T) {
	t.Helper()
	log, err := node.Kubectl(context.Background(), "-n", installName, "logs", "ds/"+installName, "--tail", "200")
	t.Logf("the daemon's log: %v\n%s", err, log)
	pods, err := node.Kubectl(context.Background(), "-n", installName, "describe", "pods")
	t.Logf("its pods: %v\n%s", err, pods)
}

// hook returns the file of the gate.
func (in *install) hook(t *testing.T) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(in.dir, "bin", "pacemaker-gate"))
	require.NoError(t, err)
	return info
}

func (in *install) assertHook(t *testing.T) {
	t.Helper()
	info := in.hook(t)
	assert.Equal(t, fs.FileMode(0o755), info.Mode())
	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	assert.Zero(t, stat.Uid, "runc runs it as root")
}

// assertPage checks what the node serves on its loopback address.
func (in *install) assertPage(t *testing.T) {
	t.Helper()
	address, err := node.Forward(t.Context(), chartAddress)
	require.NoError(t, err)
	for _, at := range []string{"/", "/status.json", "/metrics", "/healthz", "/readyz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+at, http.NoBody)
		require.NoError(t, err)
		reply, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		assert.Equal(t, http.StatusOK, reply.StatusCode, at)
	}
}

// silentConnections is the number of silent connections to the metrics port that the scenario keeps
// open.
const silentConnections = 500

// assertProbed checks that kubelet's liveness probe of the daemon succeeds, also while the silent
// connections are open.
func assertProbed(t *testing.T) {
	t.Helper()
	address, err := node.Forward(t.Context(), chartAddress)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var held atomic.Int64
	var silent sync.WaitGroup
	for range silentConnections {
		silent.Go(func() { holdSilent(ctx, address, &held) })
	}
	defer silent.Wait()
	defer cancel()
	eventually(t, "the connections are held", func() bool { return held.Load() == silentConnections })

	pod := pods(t, installName)[0]
	before := probed(t, pod, "successful")
	eventually(t, "kubelet has probed the daemon twice meanwhile", func() bool { return probed(t, pod, "successful") >= before+2 })
	assert.Zero(t, probed(t, pod, "failed"), "probes that failed")
	now := pods(t, installName)
	require.Len(t, now, 1)
	assert.Equal(t, pod.UID, now[0].UID)
	assert.Zero(t, now[0].Status.ContainerStatuses[0].RestartCount)
	figure(t, "with %d silent connections to its port, kubelet finds the daemon alive: %.0f probes, none failed",
		silentConnections, probed(t, pod, "successful"))
}

// holdSilent keeps one connection open until ctx ends. It opens a new one when the connection
// closes.
func holdSilent(ctx context.Context, address string, held *atomic.Int64) {
	var dialer net.Dialer
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			after(ctx, 100*time.Millisecond)
			continue
		}
		end := context.AfterFunc(ctx, func() { conn.Close() })
		held.Add(1)
		_, err = conn.Read(make([]byte, 1))
		held.Add(-1)
		end()
		conn.Close()
		if err == nil {
			return
		}
	}
}

// probed returns how many liveness probes of a pod had that result, according to kubelet's metrics.
func probed(t *testing.T, pod corev1.Pod, result string) (n float64) {
	t.Helper()
	text, err := node.Client().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", node.NodeName, "proxy/metrics/probes").DoRaw(t.Context())
	require.NoError(t, err)
	for sample, times := range samplesIn(t, string(text), "prober_probe_total{") {
		if strings.Contains(sample, string(pod.UID)) && strings.Contains(sample, `probe_type="Liveness"`) && strings.Contains(sample, fmt.Sprintf("result=%q", result)) {
			n += times
		}
	}
	return n
}

// replacePod deletes the daemon's pod and waits until the next one is ready.
func (in *install) replacePod(t *testing.T) {
	t.Helper()
	old := pods(t, installName)
	require.Len(t, old, 1)
	out, err := node.Kubectl(t.Context(), "-n", installName, "delete", "pod", old[0].Name)
	require.NoError(t, err, "%s", out)
	eventually(t, "another pod is ready", func() bool {
		now := pods(t, installName)
		return len(now) == 1 && now[0].UID != old[0].UID && condition(now[0], corev1.PodReady)
	})
}

// uninstall removes all applied objects in the order of the manual: the DaemonSet first.
func (in *install) uninstall(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", installName, "delete", "daemonset", installName, "--cascade=foreground")
	out, err := node.Kubectl(t.Context(), "delete", "--ignore-not-found", "-f", in.manifest)
	require.NoError(t, err, "%s", out)
	eventually(t, "the pods of the DaemonSet are gone", func() bool { return len(pods(t, installName)) == 0 })
}

// files returns all files of the installation on the host. Empty folders do not count, because a
// pod cannot remove its mounts.
func (in *install) files(t *testing.T) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(in.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func taintNode(t *testing.T) {
	t.Helper()
	out, err := node.Kubectl(t.Context(), "taint", "node", node.NodeName, startupTaint+":NoSchedule", otherTaint+":PreferNoSchedule")
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() { untaintNode(t) })
}

// untaintNode removes the scenario's taints, which may be gone already.
func untaintNode(t *testing.T) {
	t.Helper()
	for _, taint := range []string{startupTaint, otherTaint} {
		if tainted(t, taint) {
			out, err := node.Kubectl(context.Background(), "taint", "node", node.NodeName, taint+"-")
			require.NoError(t, err, "%s", out)
		}
	}
}

func tainted(t *testing.T, key string) bool {
	t.Helper()
	n, err := node.Client().CoreV1().Nodes().Get(context.Background(), node.NodeName, metav1.GetOptions{})
	require.NoError(t, err)
	for _, taint := range n.Spec.Taints {
		if taint.Key == key {
			return true
		}
	}
	return false
}

// assertTaintPolicy tries requests that the permission to patch nodes allows and the policy that
// comes with it denies, and then lets the daemon remove a taint that was put back.
func assertTaintPolicy(t *testing.T) {
	t.Helper()
	as := func(onNode string) kubernetes.Interface {
		config := rest.CopyConfig(node.RESTConfig())
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + installName + ":" + installName,
			Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {onNode}},
		}
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		return client
	}
	patch := func(client kubernetes.Interface, text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := client.CoreV1().Nodes().Patch(ctx, node.NodeName, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	mine, left := as(node.NodeName), `{"spec":{"taints":[{"key":"`+otherTaint+`","effect":"PreferNoSchedule"}]}}`
	eventually(t, "the policy is in force", func() bool {
		_, err := mine.CoreV1().Nodes().Patch(t.Context(), node.NodeName, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "may change nothing of a node")
	})
	require.ErrorContains(t, patch(mine, `{"spec":{"taints":null}}`), "may change nothing of a node but take")
	require.ErrorContains(t, patch(mine, `{"metadata":{"labels":{"role":"admin"}}}`), "may change nothing of a node")
	require.ErrorContains(t, patch(mine, `{"spec":{"unschedulable":true}}`), "may change nothing of a node")
	require.ErrorContains(t, patch(as("another"), left), "may change only the node it runs on")
	require.NoError(t, patch(node.Client(), `{"spec":{"taints":[{"key":"`+startupTaint+`","effect":"PreferNoSchedule"},{"key":"`+otherTaint+`","effect":"PreferNoSchedule"}]}}`))
	eventually(t, "a startup taint that comes back is gone", func() bool { return !tainted(t, startupTaint) })
	assert.True(t, tainted(t, otherTaint), "another taint stays")
	untaintNode(t)
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := node.Kubectl(t.Context(), args...)
	require.NoError(t, err, "%s", out)
	return string(out)
}
