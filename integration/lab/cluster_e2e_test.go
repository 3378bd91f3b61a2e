//go:build e2e

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A cluster runs a pod, survives restarts of its node's parts, and leaves nothing behind.
func TestClusterLeavesNothing(t *testing.T) {
	c, err := StartCluster(t.Context(), ClusterOptions{
		RuntimeOptions: RuntimeOptions{Binaries: built(t)},
		NodeLabels:     map[string]string{"example.com/kind": "test"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stopOnce(c.Runtime)) })
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.NodeName, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "test", node.Labels["example.com/kind"])
	require.NotContains(t, node.Status.NodeInfo.KubeletVersion, "$Format", "the version should be the built one")
	runPod(t, c, "first")
	for _, s := range []*Service{c.Kubelet, c.Containerd} {
		require.NoError(t, s.Restart(t.Context()), s.Name())
	}
	runPod(t, c, "after-restart")
	out, err := c.Kubectl(t.Context(), "logs", "first")
	require.NoError(t, err)
	require.Contains(t, string(out), "ready ", "the first pod should not have restarted")

	require.NoError(t, stopOnce(c.Runtime))
	left, err := Remains(c.Run)
	require.NoError(t, err)
	require.Empty(t, left)
}

// If the process that started a cluster is killed, the cluster is taken down. If the keeper is
// killed as well, the next start or Sweep removes the rest.
func TestKilledClusterLeavesNothing(t *testing.T) {
	for _, killKeeper := range []bool{false, true} {
		t.Run(fmt.Sprintf("keeper killed too: %t", killKeeper), func(t *testing.T) {
			parent := shortTempDir(t)
			owner, run := startOwner(t, parent)
			before, err := Remains(run)
			require.NoError(t, err)
			require.Greater(t, len(before), 10, "a cluster has many processes and cgroups")
			if killKeeper {
				require.NoError(t, syscall.Kill(keeperOf(t, owner), syscall.SIGKILL))
			}
			require.NoError(t, owner.Process.Kill())
			if killKeeper {
				eventually(t, "the run to be dead", func() error {
					alive, err := run.Alive()
					if err == nil && alive {
						err = errors.New("it lives")
					}
					return err
				})
				swept, err := Sweep(t.Context(), parent)
				require.NoError(t, err)
				require.Equal(t, []Run{run}, swept)
			}
			requireNothingLeft(t, run)
		})
	}
}

const ownerVariable = "POD_PACEMAKER_TEST_CLUSTER_IN"

// TestClusterOwner does nothing by itself: startOwner runs it as the owner of a cluster, to be
// killed.
func TestClusterOwner(t *testing.T) {
	parent := os.Getenv(ownerVariable)
	if parent == "" {
		return
	}
	c, err := StartCluster(t.Context(), ClusterOptions{RuntimeOptions: RuntimeOptions{Binaries: built(t), Parent: parent}})
	require.NoError(t, err)
	runPod(t, c, "first")
	_, err = fmt.Printf("run=%s\n", c.Dir)
	require.NoError(t, err)
	select {}
}

func startOwner(t *testing.T, parent string) (*exec.Cmd, Run) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestClusterOwner$")
	cmd.Env = append(os.Environ(), ownerVariable+"="+parent)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // dead already, unless the test failed
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		dir, ok := strings.CutPrefix(lines.Text(), "run=")
		if !ok {
			t.Log(lines.Text())
			continue
		}
		runs, err := Runs(filepath.Dir(dir))
		require.NoError(t, err)
		require.Len(t, runs, 1)
		return cmd, runs[0]
	}
	require.FailNow(t, "the cluster did not start")
	return nil, Run{}
}

// keeperOf returns the process ID of the keeper that a process started.
func keeperOf(t *testing.T, owner *exec.Cmd) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // the process has ended
		}
		var pid, parent int
		var state string
		after := text[strings.LastIndexByte(string(text), ')')+1:]
		if _, err := fmt.Sscan(string(after), &state, &parent); err != nil || parent != owner.Process.Pid {
			continue
		}
		_, err = fmt.Sscan(string(text), &pid)
		require.NoError(t, err)
		return pid
	}
	require.FailNow(t, "the owner has no child")
	return 0
}

// shortTempDir returns a folder whose path leaves room for unix sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.TempDir(), "ppl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// runPod starts a pod and waits until it is ready.
func runPod(t *testing.T, c *Cluster, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "herd", Image: HerdImage, Args: []string{"--cpu-seconds", "0.1"},
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}},
			},
		}}},
	}
	_, err := c.Client().CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, "pod "+name, func() error {
		p, err := c.Client().CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is not ready: %v", p.Status.ContainerStatuses)
	})
}
