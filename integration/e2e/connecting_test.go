//go:build e2e

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
	// slowStop is the grace period of a pod that runs until it is killed.
	slowStop = 45 * time.Second
	// connectRatio bounds how long pods take to start after a restart of the daemon, as a ratio to
	// before it.
	connectRatio = 1.3
	// connectFrozen is a ratio that other work on the machine cannot explain.
	connectFrozen = 5.0
	// connectRounds is how many pods are created in each round, one after the other.
	connectRounds = 3
)

// stubborn makes the pod run until its grace period is over.
func stubborn(grace time.Duration) shape {
	return func(spec *corev1.PodSpec) {
		seconds := int64(grace.Seconds())
		spec.TerminationGracePeriodSeconds = &seconds
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--ignore-term")
	}
}

// The daemon is restarted, and killed and started, while a pod stops slowly: pods created
// afterwards start as fast as before. Without the daemon's care, containerd would hold up all of
// the node until the stop is over (containerd#14083). A try is repeated if the stop ended too early
// or if other work slowed the machine down.
func TestConnectingDelaysNoPod(t *testing.T) {
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
		assert.Zero(t, d.metric(t, `pod_pacemaker_registration_waits{reason="ContainerStops"}`))
		if over {
			return "the stop ended before the pods ran"
		}
		return above("ratio of pod starts after a restart of the daemon", ratio, connectRatio)
	})
}

// slowlyStopped is a pod that is stopping and uses all of its grace period.
type slowlyStopped struct {
	slow, ns string        // namespaces of this pod and of the pods created meanwhile
	by       time.Time     // when kubelet kills it
	before   time.Duration // duration of podsInTurn while this pod stops
}

// stopSlowly creates a stubborn pod and deletes it once its start is over for the daemon.
func stopSlowly(t *testing.T, d *daemon, grace time.Duration) slowlyStopped {
	t.Helper()
	s := slowlyStopped{slow: namespace(t), ns: namespace(t)}
	createPod(t, s.slow, "slow", herdPod(0, stubborn(grace)))
	eventually(t, "the slow pod is ready", func() bool { return allReady(t, s.slow, 1) })
	d.idle(t)
	s.by = time.Now().Add(grace)
	require.NoError(t, node.Client().CoreV1().Pods(s.slow).Delete(t.Context(), "slow", metav1.DeleteOptions{}))
	podsInTurn(t, s.ns) // meanwhile kubelet begins to stop it
	s.before = podsInTurn(t, s.ns)
	return s
}

// over reports whether the stop may be over.
func (s slowlyStopped) over() bool { return time.Now().After(s.by.Add(-2 * time.Second)) }

// ratio replaces the daemon and waits until the next one is connected, or says why it waits. It
// returns how much longer pods then take to start.
func (s slowlyStopped) ratio(t *testing.T, d *daemon, how string, replace func()) float64 {
	t.Helper()
	since := d.status(t).Since
	replace()
	eventually(t, "the next daemon is connected, or says why it waits", func() bool {
		now, err := d.admin.Status(t.Context())
		return err == nil && now.Since.After(since) &&
			(now.Runtime.Connected || strings.Contains(now.Runtime.LastError, "is stopping a container of pod "+s.slow+"/slow"))
	})
	took := podsInTurn(t, s.ns)
	ratio := took.Seconds() / s.before.Seconds()
	figure(t, "%d pods run after %.2f s while a pod stops, and after %.2f s with %s, ratio %.2f",
		connectRounds, s.before.Seconds(), took.Seconds(), how, ratio)
	require.Less(t, ratio, connectFrozen, "the node was held up")
	return ratio
}

// podsInTurn creates pods one after the other and returns the time until the process of the last
// one runs.
func podsInTurn(t *testing.T, ns string) time.Duration {
	t.Helper()
	began := time.Now()
	for range connectRounds {
		name := "next-" + unique()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "the process of the pod runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
	}
	return time.Since(began)
}
