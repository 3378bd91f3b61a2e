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

// A herd on a node with cgroup v2, the systemd driver and AppArmor waits in the gate,
// starts two at a time, and the journal tells the story of each pod by its name.
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
	assert.Equal(t, before.Since, after.Since, "the daemon ran all the time")
	for _, p := range after.Ended[:herd] {
		assert.Equal(t, throttle.Started, p.State, p.Name)
		assert.NotEqual(t, reasons.Inferred, p.Reason, "%s: kubelet says when it is ready", p.Name)
	}

	path := sh(t, "cat /proc/$(pgrep -x herd | head -n 1)/cgroup")
	assert.Regexp(t, `^0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod\w+.slice/cri-containerd-\w+.scope$`, path)
	if strings.HasPrefix(sh(t, "cat /sys/module/apparmor/parameters/enabled"), "Y") {
		assert.Contains(t, sh(t, "cat /proc/$(pgrep -x herd | head -n 1)/attr/current"), "cri-containerd.apparmor.d (enforce)")
	}
	story(t, all[len(all)-1].pod)
}

// last is when the last of them was ready.
func last(all []life) (at time.Time) {
	for _, l := range all {
		if l.ready.After(at) {
			at = l.ready
		}
	}
	return at
}

// story checks that the journal tells of a pod that waited: found by the fields that the
// manual names, and in words that name it.
func story(t *testing.T, pod string) {
	t.Helper()
	lines := strings.Split(sh(t, "journalctl -b --no-pager -o json -u pod-pacemaker POD_NAME=%s", pod), "\n")
	require.Greater(t, len(lines), 1, "lines that tell of the pod")
	for _, line := range lines {
		var entry map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &entry))
		assert.Contains(t, entry["MESSAGE"], "default/"+pod)
		assert.Equal(t, "default", entry["POD_NAMESPACE"])
		assert.Equal(t, "pod-pacemaker", entry["SYSLOG_IDENTIFIER"])
	}
	assert.Contains(t, sh(t, "journalctl -b --no-pager -u pod-pacemaker"), "default/"+pod)
}
