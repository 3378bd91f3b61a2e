//go:build vm && full

package vm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The host still has cgroup v1 with systemd's hybrid mount. Its kernel counts no I/O for a v1
// cgroup.
func TestHybridCgroups(t *testing.T) {
	const dropIn = "/etc/systemd/system/pod-pacemaker.service.d/process-io.conf"
	t.Cleanup(func() {
		sh(t, "rm %s && sed -i /failCgroupV1/d /var/lib/kubelet/config.yaml", dropIn)
		restart(t)
	})
	sh(t, "install -D -m 0644 /usr/share/pod-pacemaker/process-io.conf %s", dropIn)
	sh(t, "echo 'failCgroupV1: false' >>/var/lib/kubelet/config.yaml") // by default kubelet refuses v1
	restart(t, "systemd.unified_cgroup_hierarchy=no", "systemd.legacy_systemd_cgroup_controller=no")
	require.Equal(t, "cgroup2fs", sh(t, "stat -f -c %%T /sys/fs/cgroup/unified"))
	require.Equal(t, "cgroupfs", sh(t, "stat -f -c %%T /sys/fs/cgroup/cpu"))
	assertGateHolds(t)
	TestSlotsAreLentByCgroups(t)
}

// SELinux enforces Debian's policy: the hook is executed, and the daemon reaches everything that it
// needs.
func TestSELinux(t *testing.T) {
	const policy = "/etc/selinux/default/contexts/files/file_contexts"
	t.Cleanup(func() { restart(t) })
	// Files get their labels before the policy is enforced.
	restart(t, "security=selinux", "selinux=1", "enforcing=0")
	sh(t, "setfiles -F %s / >/var/log/setfiles 2>&1 || tail -n 5 /var/log/setfiles", policy)
	// The scenario reaches sockets through the SSH server, which the policy would deny.
	sh(t, "echo '(typepermissive sshd_t)' >/root/scenario.cil && semodule -i /root/scenario.cil")
	restart(t, "security=selinux", "selinux=1", "enforcing=1")
	require.Equal(t, "Enforcing", sh(t, "getenforce"))
	assertGateHolds(t)
	t.Log(sh(t, "ps -eZ | grep -E 'pod-pacemaker|containerd|kubelet|herd|pacemaker-gate' || true; ls -Z /opt/pod-pacemaker/bin; journalctl -b -k --no-pager | grep -c avc: || true"))
	assert.Empty(t, sh(t, "journalctl -b --no-pager | grep 'avc:.*denied' | grep pacemaker | grep -v scontext=system_u:system_r:sshd_t || true"), "denials for the daemon and the hook")
}

// restart cuts the guest's power, boots it with these kernel parameters, and waits until its node
// is ready and the daemon paces pods.
func restart(t *testing.T, kernel ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	sh(t, "sync")
	require.NoError(t, guest.Cut(ctx))
	require.NoError(t, guest.Start(ctx, kernel...))
	require.NoError(t, soon(ctx, func() error { return nodeReady(ctx) }))
	paces(t)
}
