//go:build vm

package vm

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// property returns a property of a unit from systemd.
func property(t *testing.T, unit, name string) string {
	t.Helper()
	return sh(t, "systemctl show --value --property=%s %s", name, unit)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(text))
	require.NoError(t, err)
	return n
}

// systemd accepts the shipped unit, and its sandbox allows the daemon everything that it needs.
func TestUnit(t *testing.T) {
	assert.Empty(t, sh(t, "systemd-analyze verify --man=no /etc/systemd/system/pod-pacemaker.service 2>&1 | grep pod-pacemaker || true"))
	paces(t)
	assert.Equal(t, "active", property(t, "pod-pacemaker", "ActiveState"))
	// Only of the daemon that runs now: others have had folders of their own on purpose.
	journal := "journalctl --no-pager -o cat _SYSTEMD_INVOCATION_ID=" + property(t, "pod-pacemaker", "InvocationID")
	assert.NotEmpty(t, sh(t, "%s", journal))
	log := sh(t, "%s -p warning", journal)
	for _, fault := range []string{"denied", "not permitted", "read-only file system"} {
		assert.NotContains(t, strings.ToLower(log), fault)
	}
	for _, signal := range status(t).Signals {
		assert.Empty(t, signal.Blind, signal.Name)
	}
	figure(t, "systemd-analyze security: %s", sh(t, "systemd-analyze security --no-pager pod-pacemaker | tail -n 1"))
	figure(t, "PSS of the daemon: %s", sh(t, "grep ^Pss: /proc/$(systemctl show --value --property=MainPID pod-pacemaker)/smaps_rollup"))
}

// assertBootOrder checks the order of the units' first boot: containerd, the daemon, the kubelet.
func assertBootOrder(t *testing.T) {
	t.Helper()
	served := number(t, property(t, "containerd", "ActiveEnterTimestampMonotonic"))
	begun := number(t, property(t, "pod-pacemaker", "ExecMainStartTimestampMonotonic"))
	kubelet := number(t, property(t, "kubelet", "ExecMainStartTimestampMonotonic"))
	assert.Less(t, served, begun, "containerd serves before the daemon begins")
	assert.Less(t, begun, kubelet, "the daemon begins before the kubelet")
	figure(t, "containerd served %.1f s, the daemon began %.1f s, the kubelet %.1f s after the kernel", float64(served)/1e6, float64(begun)/1e6, float64(kubelet)/1e6)
}

// systemd's watchdog kills a daemon that hangs, and starts it again.
func TestWatchdog(t *testing.T) {
	paces(t)
	pid, restarts := property(t, "pod-pacemaker", "MainPID"), number(t, property(t, "pod-pacemaker", "NRestarts"))
	sh(t, "kill -STOP %s", pid)
	eventually(t, "another daemon has taken its place", func() bool {
		now := property(t, "pod-pacemaker", "MainPID")
		return now != pid && now != "0" && number(t, property(t, "pod-pacemaker", "NRestarts")) > restarts
	})
	paces(t)
	assert.Contains(t, sh(t, "journalctl -b --no-pager -u pod-pacemaker"), "Watchdog timeout")
}

// The unit stops at once and cleanly.
func TestStop(t *testing.T) {
	paces(t)
	begin := clock(t)
	sh(t, "systemctl stop pod-pacemaker")
	figure(t, "stopped after %.1f s", clock(t).Sub(begin).Seconds())
	assert.Equal(t, "success", property(t, "pod-pacemaker", "Result"))
	sh(t, "systemctl start pod-pacemaker")
	paces(t)
}
