//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// crowded is how many pods wait at the gate when a part of the node dies, and crowdLimit is how
// many start at a time meanwhile.
const (
	crowded    = 20
	crowdLimit = 10
)

// drainLimit is how many pods start at a time when a scenario checks the order of the starts.
const drainLimit = 3

// placesForAll are flags of a daemon at whose gate all pods wait: for sure, a start holds no slot after startTimeout,
// which is much less than an hour. kubelet ends a wait after its runtimeRequestTimeout, as with the default.
var placesForAll = []string{"--gate-timeout", "1h"}

// limit changes the limit of the config and waits until it is in force.
func (d *daemon) limit(t *testing.T, n int) {
	t.Helper()
	kubectl(t, "patch", "pacemakerconfig", d.status(t).Config.Name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"throttleConfig":{"maxConcurrent":{"value":%d}}}}`, n))
	eventually(t, fmt.Sprintf("the limit is %d", n), func() bool { return d.status(t).Limit == n })
}

// crowd fills the slots with slow pods and makes the others wait at the gate of a daemon with placesForAll. slow says
// how they are slow.
func crowd(t *testing.T, d *daemon, namespace string, slow shape) {
	t.Helper()
	hold(t, d, namespace, slow)
	deploy(t, namespace, "herd", crowded, herdPod(0.5))
	eventually(t, "the herd waits at the gate", func() bool { return d.status(t).Gate.Waiters == crowded })
}

// hold fills the slots with slow pods. slow says how they are slow.
func hold(t *testing.T, d *daemon, namespace string, slow shape) {
	t.Helper()
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}, noProgressAfter: 10m}}")
	deploy(t, namespace, "slow", crowdLimit, herdPod(0.1, slow))
	eventually(t, "the slow pods hold the slots", func() bool { return len(d.status(t).Starting) == crowdLimit })
}

// waitingNames returns the waiting pods in their order.
func (d *daemon) waitingNames(t *testing.T) (names []string) {
	t.Helper()
	for _, p := range d.status(t).Waiting {
		names = append(names, p.Name)
	}
	return names
}

// assertStartsInOrder checks that the pods started in this order, with limit at a time. Of the pods
// that are admitted together, any may run first, and while one is slow in containerd some more pass
// it. That is counted in starts, because a time would depend on the machine.
func assertStartsInOrder(t *testing.T, order []string, all []life, limit int) {
	t.Helper()
	const slow = 4
	started := map[string]time.Time{}
	for _, l := range all {
		started[l.pod.Name] = l.started
	}
	for i, early := range order {
		passed := 0
		for _, late := range order[i+1:] {
			if started[late].Before(started[early]) {
				passed++
			}
		}
		assert.LessOrEqual(t, passed, limit+slow, "pods behind %s, number %d of the queue, that started before it", early, i+1)
	}
}

func assertUnharmed(t *testing.T, all []life) {
	t.Helper()
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
		assert.Equal(t, 1, l.attempts, "containers of %s", l.pod.Name)
		assert.False(t, l.started.IsZero(), "%s never started", l.pod.Name)
	}
}

// The daemon is killed while 20 pods wait at the gate, and starts again after three seconds: the
// pods find it, keep their order, and no pod starts without a turn.
func TestDaemonKilledWhilePodsWait(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	ns := namespace(t)
	begin, slow := time.Now(), newLatch(t)
	crowd(t, d, ns, slow.holds)
	order := d.waitingNames(t)

	require.NoError(t, d.Kill(t.Context()))
	after(t.Context(), 3*time.Second)
	require.NoError(t, d.Start(t.Context()))
	again := time.Now()
	eventually(t, "all hooks have come back", func() bool { return d.status(t).Gate.Waiters == crowded })
	back := time.Since(again)
	d.assertTookOver(t, ns, begin, order, slow)
	assert.Empty(t, hooks(t), "hooks and runcs that are left")
	figure(t, "%d hooks were back %.1f s after the daemon was ready again", crowded, back.Seconds())
}

// forgottenFor bounds how long a pod may wait beside a free slot. A step of containerd and kubelet
// takes some seconds on a busy node. A pod that the queue has lost starts only at its deadline in
// the gate, after 100 s.
const forgottenFor = 20 * time.Second

// longestIdle returns the longest time in which fewer pods than the limit were between the start of
// their process and ready, while another pod's container existed and waited.
func longestIdle(all []life, limit int) (longest time.Duration) {
	type edge struct {
		at                time.Time
		waiting, starting int
	}
	var edges []edge
	for _, l := range all {
		edges = append(edges, edge{l.created, 1, 0}, edge{l.started, -1, 1}, edge{l.ready, 0, -1})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	waiting, starting := 0, 0
	var since time.Time
	for _, e := range edges {
		if !since.IsZero() {
			longest = max(longest, e.at.Sub(since))
		}
		waiting, starting = waiting+e.waiting, starting+e.starting
		switch idle := waiting > 0 && starting < limit; {
		case !idle:
			since = time.Time{}
		case since.IsZero():
			since = e.at
		}
	}
	return longest
}

// assertTookOver checks a daemon that found a waiting crowd of another daemon. It starts the crowd
// in this order once the slow pods are released, and no pod is harmed.
func (d *daemon) assertTookOver(t *testing.T, ns string, begin time.Time, order []string, slow latch) {
	t.Helper()
	assert.Equal(t, order, d.waitingNames(t), "the order of the waiting pods")
	assert.Len(t, d.status(t).Starting, crowdLimit, "starts under way that hold a slot")
	d.limit(t, drainLimit)
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, crowdLimit+crowded) })
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Len(t, all, crowdLimit+crowded)
	assertUnharmed(t, all)
	assertStartsInOrder(t, order, all, drainLimit)
	assertUnpaced(t, d, crowdLimit) // the slow pods, which it found
	idle := longestIdle(all, drainLimit)
	figure(t, "no slot was free for more than %.1f s while a pod waited", idle.Seconds())
	assert.Less(t, idle, forgottenFor, "longest time that a slot was free while a pod waited")
	assert.LessOrEqual(t, mostStarting(t, all), crowdLimit, "pods between the start of their process and ready")
}

// readyOf counts the ready pods of a Deployment.
func readyOf(t *testing.T, namespace, deployment string) (n int) {
	t.Helper()
	for _, p := range pods(t, namespace) {
		if strings.HasPrefix(p.Name, deployment+"-") && condition(p, corev1.PodReady) {
			n++
		}
	}
	return n
}

// herdOf returns only the herd's pods.
func herdOf(names []string) (herd []string) {
	for _, name := range names {
		if strings.HasPrefix(name, "herd-") {
			herd = append(herd, name)
		}
	}
	return herd
}
