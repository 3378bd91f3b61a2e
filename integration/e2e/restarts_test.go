//go:build e2e && full

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// jobs is the number of Jobs that wait.
const jobs = 3

// mostUnpaced bounds the pods that start unpaced after a restart of containerd until the daemon is
// connected again: kubelet creates few in that time.
const mostUnpaced = 2

// kubelet, then containerd, are restarted while 20 pods wait at the gate and Jobs wait as well: no
// pod fails, and the order and the limit hold. The pods that hold the slots have an init container:
// a restarted kubelet would report other pods ready, see TestKubeletIsRestartedWhileAPodStarts.
func TestKubeletAndContainerdRestartedWhilePodsWait(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	ns := namespace(t)
	begin := time.Now()
	slow := newLatch(t)
	crowd(t, d, ns, slow.holdsInit)
	order := d.waitingNames(t)
	for i := range jobs {
		createJob(t, ns, fmt.Sprintf("job-%d", i), herdPod(0.2, runOnce))
	}
	eventually(t, "the jobs wait", func() bool { return len(d.status(t).Waiting) == crowded+jobs })

	var away outage
	for _, part := range []*lab.Service{node.Kubelet, node.Containerd} {
		before, said := time.Now(), logSize(t, node.Kubelet)
		require.NoError(t, part.Stop(t.Context()))
		require.NoError(t, part.Start(t.Context()))
		if part == node.Containerd {
			away = outageFrom(t, before)
		}
		// The longer the slow pods take, the fewer pods are near their turn and have a place at the
		// gate: of 20, 6 had one after a minute.
		atGate := crowded / 2
		if part == node.Containerd {
			atGate = 1
		}
		eventually(t, "the herd waits at the gate again", func() bool {
			s := d.status(t)
			return s.Ready && s.Gate.Waiters >= atGate
		})
		now := herdOf(d.waitingNames(t))
		still := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return !slices.Contains(now, name) })
		assert.Equal(t, still, now, "the order of the waiting pods after the restart of %s", part.Name())
		assert.GreaterOrEqual(t, len(d.status(t).Starting), crowdLimit, "starts under way that hold a slot")
		// kubelet's cAdvisor waits for seconds for the task of each container that has a cgroup, and
		// kubelet waits for cAdvisor.
		missed := strings.Count(logSince(t, node.Kubelet, said), "Failed to create existing container")
		figure(t, "%s restarted: %d pods of the herd are at the gate again after %.1f s; cAdvisor waited %d times in vain for a container's task",
			part.Name(), atGate, time.Since(before).Seconds(), missed)
		assert.LessOrEqual(t, missed, crowded/2, "cgroups without a task that kubelet found, each counted twice")
	}

	slow.release(t)
	eventually(t, "all pods are ready or done", func() bool {
		return readyOf(t, ns, "slow") == crowdLimit && readyOf(t, ns, "herd") == crowded && doneOf(t, ns) == jobs
	})
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Len(t, all, crowdLimit+crowded+jobs, "pods: a Job replaces a failed one")
	for _, l := range all {
		assert.NotEqual(t, corev1.PodFailed, l.pod.Status.Phase, "%s: %s %s", l.pod.Name, l.pod.Status.Reason, l.pod.Status.Message)
	}
	d.assertOrder(t, ns, slices.DeleteFunc(slices.Clone(all), func(l life) bool { return !strings.HasPrefix(l.pod.Name, "herd-") }), gateTimeout)
	unpaced := 0 // starts while the daemon was not connected
	for _, l := range all {
		if away.missed(l.created, l.started) {
			unpaced++
		}
	}
	assert.LessOrEqual(t, unpaced, mostUnpaced, "pods that began before the daemon was connected to containerd again")
	// The slow pods start with the first process of their init container.
	for _, whole := range wholeStarts(t, ns) {
		i := slices.IndexFunc(all, func(l life) bool { return l.pod.Name == whole.pod.Name })
		if strings.HasPrefix(whole.pod.Name, "slow-") {
			all[i].started = whole.started
		}
	}
	most := mostStarting(t, all)
	assert.GreaterOrEqual(t, most, crowdLimit, "pods between the start of their first process and ready")
	assert.LessOrEqual(t, most, crowdLimit+unpaced, "pods between the start of their first process and ready")
	figure(t, "at most %d pods were starting, the limit is %d; %d began before the daemon was connected to containerd again, %.1f s after that was stopped",
		most, crowdLimit, unpaced, away.to.Sub(away.from).Seconds())
	eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
}

// logSize returns the present size of a service's log.
func logSize(t *testing.T, s *lab.Service) int64 {
	t.Helper()
	info, err := os.Stat(s.LogFile())
	require.NoError(t, err)
	return info.Size()
}

// logSince returns what a service logged after its log had that size.
func logSince(t *testing.T, s *lab.Service, size int64) string {
	t.Helper()
	text, err := os.ReadFile(s.LogFile())
	require.NoError(t, err)
	return string(text[size:])
}

// doneOf counts the succeeded pods.
func doneOf(t *testing.T, namespace string) (n int) {
	t.Helper()
	for _, p := range pods(t, namespace) {
		if p.Status.Phase == corev1.PodSucceeded {
			n++
		}
	}
	return n
}
