//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pods that wait change nothing that kubelet would have to report again: a minute of waiting costs the API server hardly a
// write of a pod's status, by refusal and in the room. At each refusal kubelet writes events, until it has written 25 of
// one type for a pod.
func TestRefusalsCostTheAPIServerLittle(t *testing.T) {
	for way, start := range map[string]func(*testing.T, ...string) *daemon{"refused": startDaemon, "in the room": startDaemonWithRoom} {
		t.Run(way, func(t *testing.T) { waitingCostsTheAPIServer(t, way, start(t)) })
	}
}

func waitingCostsTheAPIServer(t *testing.T, way string, d *daemon) {
	t.Helper()
	const waiting, span = 58, time.Minute
	d.configure(t, "{maxWait: 1h, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	ns, hold := namespace(t), newLatch(t)
	deploy(t, ns, "herd", waiting+2, herdPod(0.1, hold.holds, func(spec *corev1.PodSpec) {
		spec.DNSPolicy = corev1.DNSDefault // else kubelet writes another event at each try, as the lab has no DNS service
	}))
	eventually(t, "all other pods wait, and each was refused or is in the gate or the room", func() bool {
		s := d.status(t)
		return len(s.Waiting)+len(s.Preparing)+len(s.Starting) == waiting+2 && int(s.Refused.Sandbox+s.Refused.Container)+s.Gate.Waiters+s.Room.Waiters >= waiting
	})
	after(t.Context(), 15*time.Second) // the longest time until kubelet tries again
	before, refused, had := readAPIMetrics(t), d.status(t).Refused, eventsByReason(t, ns)
	after(t.Context(), span)
	now, then := d.status(t).Refused, readAPIMetrics(t)
	writes := func(verb string, labels ...string) float64 {
		labels = append(labels, "verb", verb)
		return then.sum("apiserver_request_total", labels...) - before.sum("apiserver_request_total", labels...)
	}
	status := writes("PATCH", "resource", "pods", "subresource", "status")
	events := writes("POST", "resource", "events") + writes("PATCH", "resource", "events")
	wrote := eventsByReason(t, ns)
	for reason, n := range had {
		wrote[reason] -= n
	}
	tries := now.Sandbox + now.Container - refused.Sandbox - refused.Container
	figure(t, "%d pods that wait for %s, %s, refused %d times (%d at the sandbox): %.0f PATCHes of pods/status, %.0f events: %v",
		waiting, span, way, tries, now.Sandbox-refused.Sandbox, status, events, wrote)
	assert.LessOrEqual(t, status, 60.0, "writes of the status of pods")
	assert.LessOrEqual(t, events, 2*float64(tries)+60, "writes of events: a try at the container is two events of kubelet, Pulled and Failed; the others are the daemon's")
	hold.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, waiting+2) })
}

// eventsByReason returns how often each event was written in a namespace, by its component and reason.
func eventsByReason(t *testing.T, ns string) map[string]int32 {
	t.Helper()
	list, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	all := map[string]int32{}
	for _, e := range list.Items {
		all[e.Source.Component+"/"+e.Reason] += max(1, e.Count)
	}
	return all
}
