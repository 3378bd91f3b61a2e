//go:build vm

package vm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

const (
	rebootPods  = 12
	rebootLimit = 2
)

// The node is rebooted with 12 pods, the unit in its place between containerd and
// kubelet: no more than the limit start at a time, from the first pod on.
func TestReboot(t *testing.T) {
	paces(t)
	createPods(t, "boot", rebootPods, herdPod(1))
	eventually(t, "all pods are ready", func() bool { return ready(t, "boot") == rebootPods })
	begin := clock(t)
	require.NoError(t, guest.Reboot(t.Context()))
	rebooted(t, begin)
	assertBootOrder(t)
	TestUnit(t)
}

// rebooted checks what happened since a reboot that began at that time of the guest.
func rebooted(t *testing.T, begin time.Time) {
	t.Helper()
	paces(t)
	eventually(t, "all pods are ready again", func() bool { return readySince(t, "boot", begin) == rebootPods })
	all := assertPaced(t, "boot", begin, rebootPods, rebootLimit)
	figure(t, "%d pods, %d at a time: the first process started %.0f s and the last was ready %.0f s after the order to reboot",
		rebootPods, rebootLimit, all[0].started.Sub(begin).Seconds(), last(all).Sub(begin).Seconds())
	assert.Empty(t, unpaced(t), "starts that went on unpaced")
}

// readySince counts the pods that the API server calls ready, and that got ready since a
// time.
func readySince(t *testing.T, name string, since time.Time) (n int) {
	t.Helper()
	for _, p := range pods(t, name) {
		for _, c := range p.Status.Conditions {
			// Its times are whole seconds.
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since.Add(time.Second)) {
				n++
			}
		}
	}
	return n
}

// latchedPods takes both slots with pods that do not get ready, and has others wait
// behind them in the gate.
func latchedPods(t *testing.T, waiters int) (latch string) {
	t.Helper()
	latch = strings.TrimSpace(sh(t, "mktemp -d /var/tmp/latch-XXXXXX"))
	t.Cleanup(func() { sh(t, "touch %s/released", latch) })
	createPods(t, "holds", rebootLimit, herdPod(0.1, latched(latch)))
	eventually(t, "both slots are taken", func() bool { return len(status(t).Starting) == rebootLimit })
	createPods(t, "waits", waiters, herdPod(0.1))
	eventually(t, "the others wait in the gate", func() bool { return status(t).Gate.Waiters == waiters })
	return latch
}

// The power fails while pods wait in the gate: after the next boot all of them start,
// no more than the limit at a time.
func TestPowerCut(t *testing.T) {
	const waiters = 3
	latch := latchedPods(t, waiters)
	sh(t, "touch %s/released && sync", latch)
	begin := clock(t)
	require.NoError(t, guest.Cut(t.Context()))
	require.NoError(t, guest.Start(t.Context()))
	paces(t)
	for name, n := range map[string]int{"holds": rebootLimit, "waits": waiters} {
		eventually(t, "all pods are ready: "+name, func() bool { return readySince(t, name, begin) == n })
	}
	all := append(lives(t, "holds", begin), lives(t, "waits", begin)...)
	logLives(t, all)
	assert.LessOrEqual(t, mostStarting(all), rebootLimit)
	assert.Len(t, all, rebootLimit+waiters, "containers")
}

// The node is shut down by logind, whose delay kubelet uses to end the pods, while pods
// wait in the gate: no process of these starts any more, and they hold nothing up.
func TestShutdownWhilePodsWait(t *testing.T) {
	const waiters = 3
	assert.Contains(t, sh(t, "systemd-inhibit --list --no-pager"), "kubelet")
	latch := latchedPods(t, waiters)
	begin := clock(t)
	require.NoError(t, guest.Reboot(t.Context()))
	ended := sh(t, "journalctl -b -1 --no-pager -o short-unix -u kubelet | tail -n 1 | cut -d. -f1")
	booted := time.Unix(int64(number(t, sh(t, "date +%%s -d \"$(uptime -s)\""))), 0)
	figure(t, "kubelet's last line %d s, the next boot %.0f s after the order", int64(number(t, ended))-begin.Unix(), booted.Sub(begin).Seconds())
	assert.Less(t, booted.Sub(begin).Seconds(), 90.0, "kubelet's grace is 60 s, the delay of the rest is systemd's")
	for _, l := range lives(t, "waits", time.Time{}) {
		assert.False(t, l.started.After(begin) && l.started.Before(booted), "%s started while the node shut down", l.pod)
	}
	sh(t, "touch %s/released", latch)
	paces(t)
}
