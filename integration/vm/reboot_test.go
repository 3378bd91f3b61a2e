//go:build vm

package vm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rebootPods  = 12
	rebootLimit = 2
)

// The node is rebooted with 12 pods, and the unit starts between containerd and kubelet: the starts
// stay within the limit from the first pod on.
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

// rebooted checks the starts since a reboot that began at a time of the guest.
func rebooted(t *testing.T, begin time.Time) {
	t.Helper()
	paces(t)
	eventually(t, "all pods are ready again", func() bool { return readySince(t, "boot", begin) == rebootPods })
	all := assertPaced(t, "boot", begin, rebootPods, rebootLimit)
	figure(t, "%d pods, %d at a time: the first process started %.0f s and the last was ready %.0f s after the order to reboot",
		rebootPods, rebootLimit, all[0].started.Sub(begin).Seconds(), last(all).Sub(begin).Seconds())
	assert.Empty(t, unpaced(t), "unpaced starts")
}

// The power fails on a node with apps that exit with 1 while an agent of the node is not ready. With startAfter none begins
// before that, and none crashes. Without it they do.
func TestRebootInOrder(t *testing.T) {
	const apps, takes = 6, 20 * time.Second
	folder := strings.TrimSpace(sh(t, "mktemp -d /var/tmp/agent-XXXXXX"))
	marked := func(flags ...string) shape {
		return func(spec *corev1.PodSpec) {
			spec.Volumes = []corev1.Volume{{Name: "mark", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "mark", MountPath: "/mark"}}
			args(flags...)(spec)
		}
	}
	labels := map[string]string{"app": "agent"}
	agent := &corev1.Pod{ // exempt, by its namespace
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "agent", Labels: labels},
		Spec:       herdPod(0, marked("--sleep", takes.String(), "--marks", "/mark/ready")),
	}
	reboots := func(t *testing.T) (begin, agentReady time.Time, crashes int32) {
		t.Helper()
		eventually(t, "all apps are ready", func() bool { return ready(t, "app") == apps })
		before := restarts(t, "app")
		begin = clock(t)
		sh(t, "rm %s/ready && sync", folder)
		require.NoError(t, guest.Cut(t.Context())) // in a regular shutdown kubelet would end pods for good that no controller makes again
		require.NoError(t, guest.Start(t.Context()))
		paces(t)
		eventually(t, "all apps are ready again", func() bool { return readySince(t, "app", begin) == apps })
		now, err := server.Client().CoreV1().Pods(agent.Namespace).Get(t.Context(), agent.Name, metav1.GetOptions{})
		require.NoError(t, err)
		for _, c := range now.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				agentReady = c.LastTransitionTime.Time
			}
		}
		require.True(t, agentReady.After(begin), "the agent is ready since %s, the power was cut at %s", agentReady, begin)
		return begin, agentReady, restarts(t, "app") - before - apps // the reboot itself counts once for each
	}
	configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	createPod(t, agent)
	eventually(t, "the agent has left its mark", func() bool { return strings.Contains(sh(t, "ls %s", folder), "ready") })
	createPods(t, "app", apps, herdPod(0.1, marked("--fails-without", "/mark/ready")))
	_, _, crashes := reboots(t)
	require.Positive(t, crashes, "apps that ended with exit code 1, without startAfter")

	configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}, startAfter: [{namespace: kube-system, podSelector: {matchLabels: {app: agent}}, timeout: 10m}]}")
	begin, agentReady, none := reboots(t)
	assert.Zero(t, none, "apps that ended with exit code 1")
	for _, l := range assertPaced(t, "app", begin, apps, rebootLimit) {
		assert.False(t, l.started.Before(agentReady), "%s started %s, and the agent was ready %s", l.pod, l.started, agentReady)
	}
	figure(t, "%d apps after an agent that takes %s: the agent was ready %.0f s after the power was cut; without startAfter apps ended %d times with exit code 1",
		apps, takes, agentReady.Sub(begin).Seconds(), crashes)
}

// restarts returns how often kubelet restarted containers of the pods with that name prefix.
func restarts(t *testing.T, name string) (sum int32) {
	t.Helper()
	for _, p := range pods(t, name) {
		for _, c := range p.Status.ContainerStatuses {
			sum += c.RestartCount
		}
	}
	return sum
}

// readySince counts the pods that are ready according to the API server and got ready since a time.
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

// latchedPods takes both slots with pods that do not get ready, and makes others wait behind them
// in the gate.
func latchedPods(t *testing.T, waiters int) (latch string) {
	t.Helper()
	latch = strings.TrimSpace(sh(t, "mktemp -d /var/tmp/latch-XXXXXX"))
	t.Cleanup(func() { sh(t, "touch %s/released", latch) })
	createPods(t, "holds", rebootLimit, herdPod(0.1, latched(latch)))
	eventually(t, "both slots are taken", func() bool { return len(status(t).Starting) == rebootLimit })
	createPods(t, "waits", waiters, herdPod(0.1))
	eventually(t, "the other pods wait in the gate", func() bool { return status(t).Gate.Waiters == waiters })
	return latch
}

// The power fails while pods wait in the gate: after the next boot all of them start within the
// limit.
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

// logind shuts the node down while pods wait in the gate, and others that kubelet never restarts wait elsewhere. kubelet uses
// the delay to end the pods: no process of a waiting pod starts, and they do not delay the shutdown.
func TestShutdownWhilePodsWait(t *testing.T) {
	const waiters, once = 3, 2
	assert.Contains(t, sh(t, "systemd-inhibit --list --no-pager"), "kubelet")
	latch := latchedPods(t, waiters)
	createPods(t, "once", once, herdPod(0.1, func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever }))
	eventually(t, "all but the holders of the slots wait", func() bool { return len(status(t).Waiting) == waiters+once })
	begin := clock(t)
	require.NoError(t, guest.Reboot(t.Context()))
	ended := sh(t, "journalctl -b -1 --no-pager -o short-unix -u kubelet | tail -n 1 | cut -d. -f1")
	booted := time.Unix(int64(number(t, sh(t, "date +%%s -d \"$(uptime -s)\""))), 0)
	figure(t, "kubelet's last line came %d s after the order, the next boot %.0f s", int64(number(t, ended))-begin.Unix(), booted.Sub(begin).Seconds())
	assert.Less(t, booted.Sub(begin).Seconds(), 90.0, "seconds until the next boot: kubelet's grace is 60 s, the rest is systemd's")
	for _, l := range append(lives(t, "waits", time.Time{}), lives(t, "once", time.Time{})...) {
		assert.False(t, l.started.After(begin) && l.started.Before(booted), "%s started while the node shut down", l.pod)
	}
	sh(t, "touch %s/released", latch)
	paces(t)
}
