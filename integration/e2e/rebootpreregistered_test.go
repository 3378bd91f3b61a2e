//go:build e2e && full

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// The node is rebooted and containerd itself starts the daemon, as a pre-registered plugin: the
// limit is in force from disk before containerd serves requests, and no order of units is needed.
// The API server is away for the first 20 seconds.
func TestRebootPreRegistered(t *testing.T) {
	onNode(t, "containerd", "")
	d := preRegister(t, shippedAccess(t, node.InnerKubeconfig, node.NodeName))
	ns := herdBeforeReboot(t, d)
	require.NoError(t, node.APIServer.Stop(t.Context()))
	shutDownPreRegistered(t, d)

	begin := time.Now()
	bootPreRegistered(t, d)
	after(t.Context(), time.Until(begin.Add(20*time.Second)))
	require.NoError(t, node.APIServer.Start(t.Context()))
	assertPacedBoot(t, d, ns, begin)
}

// The same as TestRebootPreRegistered, with only the daemon cut off from the API server until a
// minute after kubelet is back.
func TestRebootPreRegisteredCutOff(t *testing.T) {
	onNode(t, "containerd", "")
	way, kubeconfig := wayInside(t)
	d := preRegister(t, kubeconfig)
	ns := herdBeforeReboot(t, d)
	shutDownPreRegistered(t, d)
	require.NoError(t, way.Kill(t.Context()))

	begin := time.Now()
	bootPreRegistered(t, d)
	after(t.Context(), time.Minute)
	require.NoError(t, way.Start(t.Context()))
	assertPacedBoot(t, d, ns, begin)
}

// wayInside starts a forwarder to the API server inside the node's network, which can be cut, and
// returns a kubeconfig that uses it.
func wayInside(t *testing.T) (way *lab.Service, kubeconfig string) {
	t.Helper()
	const port = "18001"
	way, err := node.StartService(t.Context(), lab.ServiceSpec{
		Name: "way", Args: []string{node.KubectlPath(), "proxy", "--kubeconfig", shippedAccess(t, node.InnerKubeconfig, node.NodeName), "--port", port},
	})
	require.NoError(t, err)
	access := clientcmdapi.NewConfig()
	access.Clusters["way"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:" + port}
	access.Contexts["way"] = &clientcmdapi.Context{Cluster: "way"}
	access.CurrentContext = "way"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, kubeconfig))
	return way, kubeconfig
}

// shutDownPreRegistered is shutDown with a daemon that containerd has started, and that ends with
// containerd.
func shutDownPreRegistered(t *testing.T, d *daemon) {
	t.Helper()
	require.NoError(t, node.Kubelet.Kill(t.Context()))
	require.NoError(t, node.Containerd.Kill(t.Context()))
	eventually(t, "the daemon ends with the runtime that started it", func() bool {
		_, err := d.admin.Status(t.Context())
		return err != nil
	})
	killPods(t)
	require.NoError(t, os.RemoveAll(d.runDir))
}

// bootPreRegistered starts containerd, which starts the daemon, and then kubelet.
func bootPreRegistered(t *testing.T, d *daemon) {
	t.Helper()
	require.NoError(t, node.Containerd.Start(t.Context()))
	s := d.status(t)
	require.True(t, s.Ready, s.NotReady)
	assert.Equal(t, "Disk", s.Config.Origin, "the last good configuration is in force as soon as containerd serves")
	assert.Equal(t, 2, s.Limit)
	require.NoError(t, node.Kubelet.Start(t.Context()))
}

// A pre-registered daemon that ends is not started again, but a daemon that stands by takes over. A
// restarted containerd starts its own daemon, which leaves the other one in charge.
func TestAPreRegisteredDaemonEnds(t *testing.T) {
	onNode(t, "containerd", "")
	d := preRegister(t, shippedAccess(t, node.InnerKubeconfig, node.NodeName))
	second := d.standBy(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	killPreRegistered(t, d)
	eventually(t, "the other daemon paces pods", func() bool {
		s, err := second.admin.Status(t.Context())
		return err == nil && s.Ready && s.Config.Name != ""
	})
	ns := namespace(t)
	deploy(t, ns, "herd", 6, herdPod(0.5))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 6) })
	assert.LessOrEqual(t, mostStarting(lives(t, ns)), 2, "pods between the start of their process and ready")

	require.NoError(t, node.Containerd.Restart(t.Context()))
	eventually(t, "the other daemon still paces pods", func() bool {
		s, err := second.admin.Status(t.Context())
		return err == nil && s.Ready
	})
	deploy(t, ns, "second-herd", 6, herdPod(0.5))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 12) })
	assert.LessOrEqual(t, mostStarting(lives(t, ns)), 2, "pods between the start of their process and ready")
	second.idle(t)
}

// preRegister restarts the node's containerd so that it starts the daemon, with its configuration
// from NRI.
func preRegister(t *testing.T, kubeconfig string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp(node.Dir, "pp")
	require.NoError(t, err)
	d := &daemon{runDir: filepath.Join(dir, "run"), gate: installGate(t, dir), log: filepath.Join(dir, "log")}
	d.admin = admin.NewClient(filepath.Join(d.runDir, "admin.sock"))
	d.http, err = node.Forward(t.Context(), "127.0.0.1:9464") // the default of --http, in the node's network
	require.NoError(t, err)
	for path, text := range map[string]string{
		// The program itself would suffice, but its log would go to the journal, which the lab lacks.
		filepath.Join(node.Dir, "nri", "plugins", "05-pod-pacemaker"): fmt.Sprintf("#!/bin/sh\nexec %s 2>>%s\n", repository("bin", "pod-pacemaker"), d.log),
		filepath.Join(node.Dir, "nri", "conf.d", "05-pod-pacemaker.conf"): fmt.Sprintf(
			"kubeconfig: %s\nnode-name: %s\nrun-dir: %s\nstate-dir: %s\ngate-path: %s\nlog-level: debug\nlog-format: text\n",
			kubeconfig, node.NodeName, d.runDir, filepath.Join(dir, "state"), d.gate),
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	}
	require.NoError(t, node.Containerd.Restart(t.Context()))
	s := d.status(t)
	require.True(t, s.Ready || s.Config.Name == "", "not ready although containerd serves: %s", s.NotReady)
	eventually(t, "the daemon is ready", func() bool { return d.status(t).Ready })
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(d.log)
			t.Logf("the daemon's log: %v\n%s", err, log[max(0, len(log)-40_000):])
		}
	})
	return d
}

// killPreRegistered kills the daemon that has the lock of the run folder. The lock file names its
// process.
func killPreRegistered(t *testing.T, d *daemon) {
	t.Helper()
	said, err := os.ReadFile(filepath.Join(d.runDir, "lock"))
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(string(said), "process %d,", &pid)
	require.NoError(t, err, "%s", said)
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	require.NoError(t, err)
	require.Equal(t, "pod-pacemaker", filepath.Base(program))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
