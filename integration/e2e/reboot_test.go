//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// rebooted is the number of pods on the node when it is rebooted.
const rebooted = 20

// The node is rebooted with 20 pods while the API server is away for the first 20 seconds: from the
// first pod on, the starts stay within the limit. The daemon begins between containerd and kubelet,
// in the order of its systemd unit.
func TestReboot(t *testing.T) {
	// This is startDaemon without the check for refused requests: an API server that has just
	// started refuses requests until it has read the roles.
	d := startDaemonWith(t, "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName)
	ns := herdBeforeReboot(t, d)
	require.NoError(t, node.APIServer.Stop(t.Context()))
	shutDown(t, d)

	begin := time.Now()
	boot(t, d)
	assert.Equal(t, "Disk", d.status(t).Config.Origin, "origin of the config: the last good one from disk")
	assert.Equal(t, 2, d.status(t).Limit)
	after(t.Context(), time.Until(begin.Add(20*time.Second)))
	require.NoError(t, node.APIServer.Start(t.Context()))
	assertPacedBoot(t, d, ns, begin)
}

// herdBeforeReboot runs a herd, and returns its namespace.
func herdBeforeReboot(t *testing.T, d *daemon) (namespaceName string) {
	t.Helper()
	ns := namespace(t)
	deploy(t, ns, "herd", rebooted, herdPod(0.5)) // no limit yet
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, rebooted) })
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	d.idle(t)
	return ns
}

// shutDown ends what a reboot ends: kubelet, the daemon, containerd, every process of a pod, and
// everything that is only in memory.
func shutDown(t *testing.T, d *daemon) {
	t.Helper()
	for _, part := range []interface{ Kill(context.Context) error }{node.Kubelet, d, node.Containerd} {
		require.NoError(t, part.Kill(t.Context()))
	}
	killPods(t)
	require.NoError(t, os.RemoveAll(d.runDir))
}

// boot starts the node in the order of the systemd units.
func boot(t *testing.T, d *daemon) {
	t.Helper()
	for _, part := range []interface{ Start(context.Context) error }{node.Containerd, d, node.Kubelet} {
		require.NoError(t, part.Start(t.Context()))
	}
}

// killPods kills every process of a pod, and the shims.
func killPods(t *testing.T) {
	t.Helper()
	eventually(t, "no process of a pod is left", func() bool {
		left := podProcesses(t)
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Errorf("kill of %d: %v", pid, err)
			}
		}
		return len(left) == 0
	})
}

// podProcesses returns the processes of the node's pods, and the shims.
func podProcesses(t *testing.T) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && ofPod(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ofPod reports whether a process belongs to a pod of the node, or is a shim.
func ofPod(pid int) bool {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	cgroup, err := os.ReadFile(filepath.Join(folder, "cgroup"))
	if err != nil || !strings.Contains(string(cgroup), node.Cgroup+"/") {
		return false // another process, or gone
	}
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil || strings.Contains(string(stat), ") Z ") {
		return false
	}
	return strings.Contains(string(cgroup), node.Cgroup+"/kubepods") || isShim(pid)
}

// isShim reports whether a process is a shim of containerd.
func isShim(pid int) bool {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return err == nil && strings.HasPrefix(string(name), "containerd-shim")
}

// assertPacedBoot waits until all pods are ready again, and checks their starts.
func assertPacedBoot(t *testing.T, d *daemon, ns string, begin time.Time) {
	t.Helper()
	var all []life
	eventually(t, "all pods are ready again", func() bool {
		all = livesSince(t, ns, begin)
		for _, l := range all {
			if l.started.Before(begin) || l.ready.IsZero() {
				return false
			}
		}
		return allReady(t, ns, rebooted)
	})
	d.idle(t)
	logLives(t, begin, all)
	assert.Len(t, all, rebooted)
	assert.LessOrEqual(t, mostStarting(t, all), 2, "pods between the start of their process and ready")
	assertAllPaced(t, d)
	s := d.status(t)
	figure(t, "%d pods all ready %.1f s after containerd began; at most %d starting; %d refused at the sandbox, %d at the container",
		rebooted, lastReady(all).Sub(begin).Seconds(), mostStarting(t, all), s.Refused.Sandbox, s.Refused.Container)
}

// wire is a connection to the API server that can be cut.
type wire struct {
	to  string
	mu  sync.Mutex
	cut bool
	all []net.Conn
}

// newWire returns a wire to the API server, and a kubeconfig that uses it with the shipped rights.
func newWire(t *testing.T) (w *wire, kubeconfig string) {
	t.Helper()
	access, err := clientcmd.LoadFromFile(asServiceAccount(t))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w = &wire{}
	for _, c := range access.Clusters {
		server, err := url.Parse(c.Server)
		require.NoError(t, err)
		w.to = server.Host
		c.Server = "https://" + l.Addr().String()
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, kubeconfig))
	var serving sync.WaitGroup
	serving.Go(func() { w.serve(l, &serving) })
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
		w.set(true)
		serving.Wait()
	})
	return w, kubeconfig
}

func (w *wire) serve(l net.Listener, serving *sync.WaitGroup) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := w.join(from)
		if err != nil {
			_ = from.Close() // a cut wire
			continue
		}
		for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
			serving.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // until either end closes
				_, _ = way[0].Close(), way[1].Close()
			})
		}
	}
}

// join opens the other half of a connection.
func (w *wire) join(from net.Conn) (to net.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, fmt.Errorf("cut")
	}
	if to, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", w.to); err == nil {
		w.all = append(w.all, from, to)
	}
	return to, err
}

// set cuts the wire, or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	if cut {
		for _, c := range w.all {
			_ = c.Close() // it may be closed already
		}
		w.all = nil
	}
}
