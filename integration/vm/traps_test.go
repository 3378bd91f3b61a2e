//go:build vm

package vm

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const access = "--kubeconfig=/etc/kubernetes/pod-pacemaker.conf --log-level=debug"

// A hook on a mount that bars execution would have every container fail that gets it: the
// daemon finds that out before the first, names the mount, and paces without the gate.
func TestNoExecHookFolder(t *testing.T) {
	sh(t, "mkdir -p /mnt/hooks && mount -t tmpfs -o mode=755 hooks /mnt/hooks && "+
		"/opt/pod-pacemaker/bin/pod-pacemaker install-gate --to /mnt/hooks/bin && mount -o remount,noexec /mnt/hooks")
	t.Cleanup(func() { sh(t, "umount -l /mnt/hooks") })
	arguments(t, access+" --gate-path=/mnt/hooks/bin/pacemaker-gate")
	s := status(t)
	assert.False(t, s.Gate.Usable)
	assert.Contains(t, s.Gate.WhyNot, "/mnt/hooks is mounted noexec")
	assert.Contains(t, sh(t, "/opt/pod-pacemaker/bin/pod-pacemaker status"), "/mnt/hooks is mounted noexec")
	begin := clock(t)
	createPods(t, "noexec", 3, herdPod(0.5))
	eventually(t, "all are ready", func() bool { return ready(t, "noexec") == 3 })
	for _, l := range lives(t, "noexec", begin) {
		assert.False(t, l.started.IsZero(), "a container of %s failed", l.pod)
	}
	sh(t, "mount -o remount,exec /mnt/hooks")
	eventually(t, "the gate is used once it can be", func() bool { return status(t).Gate.Usable })
}

// Mounts that harden a host: a run folder from which nothing is executed costs nothing, and
// where /opt cannot be written, the installation of the hook says so and the daemon goes on.
func TestHardenedMounts(t *testing.T) {
	sh(t, "mount -o remount,noexec /run && mount --bind /opt /opt && mount -o remount,bind,ro /opt")
	t.Cleanup(func() { sh(t, "umount -l /opt && mount -o remount,exec /run") })
	said, err := guest.Run(t.Context(), "/opt/pod-pacemaker/bin/pod-pacemaker install-gate --to /opt/another/bin 2>&1")
	require.Error(t, err)
	assert.Contains(t, said, "/opt/another/bin")
	assert.Contains(t, said, "read-only file system")
	arguments(t, access)
	assert.True(t, status(t).Gate.Usable, status(t).Gate.WhyNot)
	begin := clock(t)
	createPods(t, "hard", 4, herdPod(1))
	most := 0
	eventually(t, "all are ready", func() bool {
		most = max(most, status(t).Gate.Waiters)
		return ready(t, "hard") == 4
	})
	assert.Positive(t, most, "pods that waited in the gate")
	assertPaced(t, "hard", begin, 4, 2)
}
