//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The node is rebooted, and the daemon alone is cut off from the API server until a
// minute after kubelet is back: it knows the limit from disk, and judges the pods by
// what the node shows.
func TestRebootCutOff(t *testing.T) {
	wire, kubeconfig := newWire(t)
	d := startDaemonAs(t, kubeconfig)
	ns := herdBeforeReboot(t, d)
	shutDown(t, d)
	wire.set(true)

	begin := time.Now()
	boot(t, d)
	require.Equal(t, "Disk", d.status(t).Config.Origin)
	after(t.Context(), time.Minute)
	wire.set(false)
	assertPacedBoot(t, d, ns, begin)
}
