//go:build e2e && full

package e2e

import "testing"

// oldestKubernetes is the name in versions.txt of the oldest release of Kubernetes that can be built here. The modules of
// 1.29 cannot be had.
const oldestKubernetes = "kubernetes@1.30"

// On an old Kubernetes, a herd starts within its limit, and pods wait in the gate over a restart of the daemon, by
// refusal, and in the room.
func TestTheOldestKubernetes(t *testing.T) {
	onNode(t, oldestKubernetes, "")
	t.Run("herd", TestHerd)
	t.Run("gate and restart", TestDaemonKilledWhilePodsWait)
	t.Run("refusal", TestNeverRestartedPods)
	t.Run("room", TestWaitingRoom)
}
