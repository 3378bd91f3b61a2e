//go:build e2e && full

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rebootWarnings bounds the Warning events of ours after a reboot of 20 pods. On a node so busy that a pod's network takes
// more than 5 s, a pod cannot tell that it may wait.
const rebootWarnings = 2

// The node is rebooted with 20 pods, and the CNI agent writes its file right before kubelet starts them. No pod may wait
// in the room for 10 s after a change, unless the runtime has read the folder, as it has here: none is sent away with a
// warning.
func TestRebootRightAfterTheAgentWroteItsFile(t *testing.T) {
	removeRoomLater(t)
	d := startDaemonWith(t, append([]string{"--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName}, roomArgs("auto")...)...)
	d.awaitRoom(t)
	ns := herdBeforeReboot(t, d)
	shutDown(t, d)

	begin := time.Now()
	require.NoError(t, node.Containerd.Start(t.Context()))
	require.NoError(t, d.Start(t.Context()))
	configs, _ := roomFolders()
	file := filepath.Join(configs, "10-lab.conflist")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, node.Kubelet.Start(t.Context()))
	assertPacedBoot(t, d, ns, begin)
	ours := warningsOfOurs(t, ns)
	for pod, says := range ours {
		t.Logf("%s: %v", pod, says)
	}
	figure(t, "%d pods, rebooted when the agent had just written its file: Warning events of ours for %d of them", rebooted, len(ours))
	assert.LessOrEqual(t, len(ours), rebootWarnings, "pods with Warning events of ours")
	assert.True(t, d.status(t).Room.Installed)
}

// warningsOfOurs returns the Warning events of a namespace that name pod-pacemaker, by pod.
func warningsOfOurs(t *testing.T, ns string) (says map[string][]string) {
	t.Helper()
	says = map[string][]string{}
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	require.NoError(t, err)
	for _, e := range events.Items {
		if ofOurs(e) {
			says[e.InvolvedObject.Name] = append(says[e.InvolvedObject.Name], e.Reason+": "+e.Message)
		}
	}
	return says
}
