//go:build vm

package vm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const access = "--kubeconfig=/etc/kubernetes/pod-pacemaker.conf --log-level=debug --cni=off"

// Every container with a hook on a mount that bars execution would fail: the daemon finds the mount
// before the first container, names it, and paces pods without the gate.
func TestNoExecHookFolder(t *testing.T) {
	sh(t, "mkdir -p /mnt/hooks && mount -t tmpfs -o mode=755 hooks /mnt/hooks && "+
		"install -D -m 0755 -t /mnt/hooks/bin /opt/pod-pacemaker/bin/pacemaker-gate && mount -o remount,noexec /mnt/hooks")
	t.Cleanup(func() { sh(t, "umount -l /mnt/hooks") })
	arguments(t, access+" --gate-path=/mnt/hooks/bin/pacemaker-gate")
	s := status(t)
	assert.False(t, s.Gate.Usable)
	assert.Contains(t, s.Gate.WhyNot, "/mnt/hooks is mounted noexec")
	assert.Contains(t, sh(t, "/opt/pod-pacemaker/bin/pod-pacemaker status"), "/mnt/hooks is mounted noexec")
	begin := clock(t)
	createPods(t, "noexec", 3, herdPod(0.5))
	eventually(t, "all pods are ready", func() bool { return ready(t, "noexec") == 3 })
	for _, l := range lives(t, "noexec", begin) {
		assert.False(t, l.started.IsZero(), "a container of %s failed", l.pod)
	}
	// The unit's sandbox keeps the flags that mounts had when the daemon started.
	sh(t, "mount -o remount,exec /mnt/hooks && systemctl restart pod-pacemaker")
	paces(t)
	assert.True(t, status(t).Gate.Usable, status(t).Gate.WhyNot)
}

// Mounts can harden a host: a run folder without execution does no harm, and if /opt is read-only,
// the daemon says that it cannot install its hook in another folder there, and continues.
func TestHardenedMounts(t *testing.T) {
	sh(t, "mount -o remount,noexec /run && mount --bind /opt /opt && mount -o remount,bind,ro /opt")
	t.Cleanup(func() { sh(t, "umount -l /opt && mount -o remount,exec /run") })
	arguments(t, access+" --gate-path=/opt/another/bin/pacemaker-gate")
	assert.Contains(t, status(t).Gate.WhyNot, "the hook cannot be installed: mkdir /opt/another: read-only file system")
	said := sh(t, "journalctl -b --no-pager -u pod-pacemaker | grep 'cannot install the hook of the gate'")
	assert.Contains(t, said, "read-only file system")
	arguments(t, access)
	assertGateHolds(t)
}

// On a host without /opt, for example with an image as its root file system, the programs, the hook
// and CNI's plugins are in a writable folder.
func TestHostWithoutOpt(t *testing.T) {
	const bin, dropIn = "/var/lib/node/pod-pacemaker/bin", "/etc/systemd/system/pod-pacemaker.service.d/elsewhere.conf"
	t.Cleanup(func() {
		sh(t, "mv /opt.away /opt && cp /etc/containerd/config.toml.before /etc/containerd/config.toml && rm %s && rm -r /var/lib/node && "+
			"systemctl daemon-reload && systemctl restart containerd pod-pacemaker", dropIn)
		paces(t)
	})
	sh(t, "cp -a /opt /var/lib/node && mv /opt /opt.away && cp /etc/containerd/config.toml /etc/containerd/config.toml.before")
	// containerd would create /opt/containerd, for programs of its own that the guest does not use.
	sh(t, `cat >>/etc/containerd/config.toml <<'end'

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/var/lib/node/cni/bin']
end
sed -i "1,/^version/s/^version.*/&\ndisabled_plugins = ['io.containerd.internal.v1.opt']/" /etc/containerd/config.toml`)
	require.NoError(t, guest.Write(t.Context(), dropIn, "[Service]\nExecStart=\n"+
		"ExecStart="+bin+"/pod-pacemaker run --config=/etc/pod-pacemaker/config.yaml --log-format=journald --gate-path="+bin+"/pacemaker-gate $EXTRA_ARGS"))
	sh(t, "systemctl daemon-reload && systemctl restart containerd pod-pacemaker")
	paces(t)
	assertGateHolds(t)
	sh(t, "test ! -e /opt")
}

// assertGateHolds checks that pods wait in the gate while two pods hold the slots, and then start
// two at a time.
func assertGateHolds(t *testing.T) {
	t.Helper()
	const waiters = 3
	assert.True(t, status(t).Gate.Usable, status(t).Gate.WhyNot)
	begin := clock(t)
	latch := latchedPods(t, waiters)
	sh(t, "touch %s/released", latch)
	eventually(t, "all pods are ready", func() bool { return ready(t, "holds") == rebootLimit && ready(t, "waits") == waiters })
	all := append(lives(t, "holds", begin), lives(t, "waits", begin)...)
	logLives(t, all)
	assert.Len(t, all, rebootLimit+waiters, "containers")
	assert.LessOrEqual(t, mostStarting(all), rebootLimit, "pods between the start of their process and ready")
}
