//go:build e2e && full

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const (
	mib = 1 << 20
	// finishedPods is what a node may have of pods that have ended: the control plane keeps 12,500 of them in all.
	finishedPods = 12_500
	// finishedRSS bounds the daemon's resident bytes beside them. It has 25 MiB without any pod.
	finishedRSS = 40 * mib
	// hugePods have as many containers as the API server takes in a pod: 1.4 MB of JSON.
	hugePods, hugeContainers = 40, 5_200
	// memoryLimit is the memory limit of the DaemonSet and of the unit, and so their GOMEMLIMIT.
	memoryLimit = 256 * mib
)

// What the daemon takes is bounded by the node's pods that run, and not by what a tenant writes: 12,500 finished pods are not
// even read, and of pods of the greatest size only names are kept, whether the API server streams its lists or not.
func TestTheDaemonsMemoryIsBoundedWhateverThePodsAre(t *testing.T) {
	config := rest.CopyConfig(access)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	pods := client.CoreV1().Pods("default")
	t.Cleanup(func() {
		none := int64(0)
		assert.NoError(t, pods.DeleteCollection(context.Background(), metav1.DeleteOptions{GracePeriodSeconds: &none}, metav1.ListOptions{LabelSelector: "memory"}))
	})
	// No controller makes it here, and without it the API server takes no pod.
	_, err = client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	began := time.Now()
	makePods(t, finishedPods, 16, func(i int) error {
		pod, err := pods.Create(t.Context(), podOf("finished", fmt.Sprint("finished-", i), 1), metav1.CreateOptions{})
		if err == nil {
			_, err = pods.Patch(t.Context(), pod.Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
		}
		return err
	})
	t.Logf("%d finished pods were made in %s", finishedPods, time.Since(began).Round(time.Second))
	alone := peakBeside(t, "nobody", true)
	for what, streams := range map[string]bool{"streams its lists": true, "does not stream lists": false} {
		peak := peakBeside(t, "finished", streams)
		t.Logf("an API server that %s, %d finished pods: at most %.1f MiB resident; without any pod %.1f MiB", what, finishedPods, peak/mib, alone/mib)
		assert.Less(t, peak, float64(finishedRSS))
	}

	size := 0
	makePods(t, hugePods, 1, func(i int) error {
		pod, err := pods.Create(t.Context(), podOf("huge", fmt.Sprint("huge-", i), hugeContainers), metav1.CreateOptions{})
		if i == 0 && err == nil {
			data, err := json.Marshal(pod)
			size = len(data)
			return err
		}
		return err
	})
	for what, streams := range map[string]bool{"streams its lists": true, "does not stream lists": false} {
		peak := peakBeside(t, "huge", streams)
		t.Logf("an API server that %s, %d pods of %.1f MB: at most %.1f MiB resident", what, hugePods, float64(size)/1e6, peak/mib)
		assert.Less(t, peak, float64(memoryLimit))
	}
}

// makePods calls one for each of n pods, a number of them at a time.
func makePods(t *testing.T, n, atOnce int, one func(i int) error) {
	t.Helper()
	all, ctx := errgroup.WithContext(t.Context())
	all.SetLimit(atOnce)
	for i := range n {
		if ctx.Err() != nil {
			break // Wait says why
		}
		all.Go(func() error { return one(i) })
	}
	require.NoError(t, all.Wait())
}

// podOf returns a pod of a node.
func podOf(node, name string, containers int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"memory": ""}}, Spec: corev1.PodSpec{NodeName: node}}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("app-", i), Image: "none"})
	}
	return pod
}

// peakBeside runs the daemon of a node, which has no runtime, until it has read the node's pods, and returns its peak of
// resident bytes.
func peakBeside(t *testing.T, node string, streams bool) float64 {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "run", "admin.sock")
	service, err := server.StartService(t.Context(), lab.ServiceSpec{
		Name: "daemon-" + filepath.Base(dir), HostNetwork: true, Env: []string{fmt.Sprint("GOMEMLIMIT=", memoryLimit)},
		Args: []string{
			chart.Repository("bin", "pod-pacemaker"), "run", "--kubeconfig", kubeconfigOf(t, dir, streams), "--node-name", node,
			"--nri-socket", filepath.Join(dir, "nri.sock"), "--run-dir", filepath.Dir(socket), "--state-dir", filepath.Join(dir, "state"), "--http", "",
		},
		Ready: func(ctx context.Context) error {
			s, err := admin.NewClient(socket).Status(ctx)
			if err == nil && (s.PodWatch == nil || !s.PodWatch.Healthy) {
				err = fmt.Errorf("the pods are not read: %+v", s.PodWatch)
			}
			return err
		},
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, service.Stop(context.Background())) }()
	fs, err := procfs.NewDefaultFS()
	require.NoError(t, err)
	process, err := fs.Proc(service.PID())
	require.NoError(t, err)
	status, err := process.NewStatus()
	require.NoError(t, err)
	return float64(status.VmHWM)
}

// kubeconfigOf returns a kubeconfig that leads to the API server, which refuses to stream lists, as older ones do, unless
// streams.
func kubeconfigOf(t *testing.T, dir string, streams bool) string {
	t.Helper()
	to, err := url.Parse(access.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(access)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !streams && r.URL.Query().Get("sendInitialEvents") != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, front.URL), 0o600))
	return path
}
