//go:build e2e && full

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// slowStop is the grace period of a pod that does not stop before it is killed.
	slowStop = 45 * time.Second
	// connectRatio bounds what pods take after a restart of the daemon, in times of what
	// they take before it.
	connectRatio = 1.3
	// connectFrozen is a ratio that no other work of the machine explains.
	connectFrozen = 5.0
	// connectRounds is how many pods are made in each round, one after the other.
	connectRounds = 3
)

// stubborn makes the pod stop only when its grace period is over.
func stubborn(grace time.Duration) shape {
	return func(spec *corev1.PodSpec) {
		seconds := int64(grace.Seconds())
		spec.TerminationGracePeriodSeconds = &seconds
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--ignore-term")
	}
}

// While a pod of the node is being stopped, and takes long to, the daemon is restarted, and
// killed and started: the pods that come next start as fast as before. containerd would keep
// them, and everything else of the node, until the stop is over (containerd#14083). A run
// whose stop ended too early shows nothing, and is made again, as is one that other work of
// the machine has slowed down.
func TestConnectingHoldsUpNobody(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		d := startDaemon(t)
		d.configure(t, "{throttleConfig: {maxConcurrent: {value: 10}}}")
		stop, ratio := stopSlowly(t, d, slowStop), 0.0
		for what, end := range map[string]func(context.Context) error{"restarted": d.Stop, "killed": d.Kill} {
			ratio = max(ratio, stop.ratio(t, d, "the daemon "+what, func() {
				require.NoError(t, end(t.Context()))
				d.startUnready(t)
			}))
		}
		over := stop.over()
		eventually(t, "the slow pod is gone", func() bool { return len(pods(t, stop.slow)) == 0 })
		eventually(t, "pods are paced", func() bool { return d.status(t).Ready })
		assert.Zero(t, d.metric(t, "pod_pacemaker_registration_waits"))
		if over {
			return "the stop was over before the pods ran"
		}
		return above("pods after a restart of the daemon, the ratio", ratio, connectRatio)
	})
}

// slowlyStopped is a pod of the node that is being stopped, and takes all its grace period.
type slowlyStopped struct {
	slow, ns string        // namespaces: of that pod, and of those that are made beside
	by       time.Time     // when it is killed
	before   time.Duration // what podsInTurn takes beside it
}

// stopSlowly makes such a pod, and deletes it once the daemon is done with it.
func stopSlowly(t *testing.T, d *daemon, grace time.Duration) slowlyStopped {
	t.Helper()
	s := slowlyStopped{slow: namespace(t), ns: namespace(t)}
	createPod(t, s.slow, "slow", herdPod(0, stubborn(grace)))
	eventually(t, "the slow pod is ready", func() bool { return allReady(t, s.slow, 1) })
	d.idle(t)
	s.by = time.Now().Add(grace)
	require.NoError(t, node.Client().CoreV1().Pods(s.slow).Delete(t.Context(), "slow", metav1.DeleteOptions{}))
	podsInTurn(t, s.ns) // kubelet has begun to stop it
	s.before = podsInTurn(t, s.ns)
	return s
}

// over tells whether the stop may be over.
func (s slowlyStopped) over() bool { return time.Now().After(s.by.Add(-2 * time.Second)) }

// ratio has the daemon replaced, and gives how much longer pods take once the next one has
// found the runtime, or says why it waits.
func (s slowlyStopped) ratio(t *testing.T, d *daemon, how string, replace func()) float64 {
	t.Helper()
	since := d.status(t).Since
	replace()
	eventually(t, "the next daemon has found the runtime, or says why it waits", func() bool {
		now, err := d.admin.Status(t.Context())
		return err == nil && now.Since.After(since) &&
			(now.Runtime.Connected || strings.Contains(now.Runtime.LastError, s.slow+"/slow is being stopped"))
	})
	took := podsInTurn(t, s.ns)
	ratio := took.Seconds() / s.before.Seconds()
	figure(t, "%d pods run after %.2f s in all with a pod being stopped, %.2f s with %s beside, ratio %.2f",
		connectRounds, s.before.Seconds(), took.Seconds(), how, ratio)
	require.Less(t, ratio, connectFrozen, "the node stood still")
	return ratio
}

// podsInTurn makes pods one after the other, and gives how long it took until the process
// of the last one ran.
func podsInTurn(t *testing.T, ns string) time.Duration {
	t.Helper()
	began := time.Now()
	for range connectRounds {
		name := "next-" + unique()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "its process runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
	}
	return time.Since(began)
}

// startUnready starts the daemon, and waits until it answers: it need not pace pods yet.
func (d *daemon) startUnready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() { started <- d.Start(ctx) }()
	eventually(t, "the daemon answers", func() bool {
		_, err := d.admin.Status(t.Context())
		return err == nil
	})
	cancel() // it is waited for no longer
	t.Logf("it answers before it paces pods; what is said of the wait for that: %v", <-started)
}
