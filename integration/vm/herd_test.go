//go:build vm

package vm

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// On a node with cgroup v2, the systemd driver and AppArmor, a herd waits in the gate and starts
// two at a time, and the journal has each pod's messages under its name.
func TestHerd(t *testing.T) {
	const herd, limit = 6, 2
	require.Equal(t, "cgroup2fs", sh(t, "stat -f -c %%T /sys/fs/cgroup"))
	paces(t)
	before := status(t)
	begin := clock(t)
	createPods(t, "herd", herd, herdPod(4))
	most := 0
	eventually(t, "all pods are ready", func() bool {
		most = max(most, status(t).Gate.Waiters)
		return ready(t, "herd") == herd
	})
	all := assertPaced(t, "herd", begin, herd, limit)
	figure(t, "%d pods of 4 CPU-seconds, %d at a time: ready after %.0f s; at most %d waited in the gate",
		herd, limit, last(all).Sub(begin).Seconds(), most)
	assert.Positive(t, most, "pods that waited in the gate")
	for _, pod := range pods(t, "herd") {
		assert.Zero(t, pod.Status.ContainerStatuses[0].RestartCount, pod.Name)
	}
	after := status(t)
	assert.True(t, after.Gate.Usable, after.Gate.WhyNot)
	assert.Equal(t, before.Since, after.Since, "start of the daemon, which did not restart")
	for _, p := range after.Ended[:herd] {
		assert.Equal(t, throttle.Started, p.State, p.Name)
		assert.NotEqual(t, reasons.Inferred, p.Reason, "%s: kubelet reports when it is ready", p.Name)
	}

	path := sh(t, "cat /proc/$(pgrep -x herd | head -n 1)/cgroup")
	assert.Regexp(t, `^0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod\w+.slice/cri-containerd-\w+.scope$`, path)
	if strings.HasPrefix(sh(t, "cat /sys/module/apparmor/parameters/enabled"), "Y") {
		assert.Contains(t, sh(t, "cat /proc/$(pgrep -x herd | head -n 1)/attr/current"), "cri-containerd.apparmor.d (enforce)")
	}
	story(t, all[len(all)-1].pod)
}

// With the waiting room, pods wait before their sandbox is created. The shipped unit lets the daemon
// write to CNI's folders. The room is removed as the manual says.
func TestWaitingRoom(t *testing.T) {
	const waiters = 10
	t.Run("on", func(t *testing.T) {
		arguments(t, access+" --cni=auto")
		eventually(t, "the room is installed", func() bool { return status(t).Room.Installed })
		latch := strings.TrimSpace(sh(t, "mktemp -d /var/tmp/latch-XXXXXX"))
		t.Cleanup(func() { sh(t, "touch %s/released", latch) })
		begin := clock(t)
		createPods(t, "holds", 2, herdPod(0.1, latched(latch)))
		eventually(t, "both slots are taken", func() bool { return len(status(t).Starting) == 2 })
		createPods(t, "room", waiters, herdPod(0.5))
		room := 0
		eventually(t, "the other pods wait", func() bool {
			s := status(t)
			room = s.Room.Waiters
			return room > 0 && room+s.Gate.Waiters == waiters
		})
		for _, pod := range pods(t, "room") {
			for _, c := range pod.Status.ContainerStatuses {
				require.NotNil(t, c.State.Waiting, pod.Name)
				assert.Equal(t, "ContainerCreating", c.State.Waiting.Reason, pod.Name)
			}
		}
		sh(t, "touch %s/released", latch)
		eventually(t, "all pods are ready", func() bool { return ready(t, "room") == waiters && ready(t, "holds") == 2 })
		all := append(lives(t, "holds", begin), lives(t, "room", begin)...)
		logLives(t, all)
		assert.Len(t, all, waiters+2, "containers")
		assert.LessOrEqual(t, mostStarting(all), 2, "pods between the start of their process and ready")
		figure(t, "%d of %d pods waited in the room", room, waiters)
	})
	// The manual's order: the configuration first, because it names the program.
	sh(t, "rm /etc/cni/net.d/00-pod-pacemaker.conflist && rm /opt/cni/bin/pacemaker-cni")
	createPods(t, "without", 1, herdPod(0.1))
	eventually(t, "a pod starts without the room", func() bool { return ready(t, "without") == 1 })
}

// last returns when the last of the pods was ready.
func last(all []life) (at time.Time) {
	for _, l := range all {
		if l.ready.After(at) {
			at = l.ready
		}
	}
	return at
}

// story checks the journal's messages about a pod that waited: the manual's fields find them, and
// their text names the pod.
func story(t *testing.T, pod string) {
	t.Helper()
	lines := strings.Split(sh(t, "journalctl -b --no-pager -o json -u pod-pacemaker POD_NAME=%s", pod), "\n")
	require.Greater(t, len(lines), 1, "lines about the pod")
	for _, line := range lines {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		assert.Contains(t, entry["MESSAGE"], "default/"+pod)
		assert.Equal(t, "default", entry["POD_NAMESPACE"])
		assert.Equal(t, "pod-pacemaker", entry["SYSLOG_IDENTIFIER"])
	}
	assert.Contains(t, sh(t, "journalctl -b --no-pager -u pod-pacemaker"), "default/"+pod)
}
