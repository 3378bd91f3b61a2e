//go:build e2e

package e2e

import (
	"runtime"
	"testing"
	"time"
)

// The herd: its number of pods, and the CPU-seconds that each needs before it is ready.
const (
	herdPods       = 16
	herdCPUSeconds = 4.0
)

func idealHerd() time.Duration {
	return time.Duration(herdPods * herdCPUSeconds / float64(runtime.NumCPU()) * float64(time.Second))
}

// The herd, a Deployment with readiness and liveness probes but no startup probe, is paced two at a
// time, as by default with the waiting room: the liveness probe kills no pod and the makespan stays near the ideal.
func TestHerd(t *testing.T) {
	pacedHerd(t, withLiveness)
}

// pacedHerd runs the herd with two starts at a time.
func pacedHerd(t *testing.T, shapes ...shape) {
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	repeated(t, func(t *testing.T) string {
		h := runHerd(t, d, shapes...)
		figure(t, "%s", h)
		assertAllPaced(t, d)
		return h.judgePaced(t)
	})
}

// runHerd creates the herd and waits until it is ready, or late.
func runHerd(t *testing.T, d *daemon, shapes ...shape) herd {
	t.Helper()
	h := herdIn(t, namespace(t), shapes...)
	logLives(t, h.begin, h.all)
	if !h.late {
		d.idle(t)
	}
	return h
}

// herdIn is runHerd on a node with or without a daemon.
func herdIn(t *testing.T, ns string, shapes ...shape) herd {
	t.Helper()
	before := readMachine(t)
	h := herd{begin: before.at}
	deploy(t, ns, "herd", herdPods, herdPod(herdCPUSeconds, shapes...))
	for !allReady(t, ns, herdPods) && !h.late {
		after(t.Context(), 100*time.Millisecond)
		h.late = time.Since(h.begin) > testTimeout
	}
	h.machine = before.since(t)
	h.all = lives(t, ns)
	return h
}

// logLives logs the timeline of a scenario.
func logLives(t *testing.T, begin time.Time, all []life) {
	t.Helper()
	for _, l := range all {
		t.Logf("%-28s created %6.2f  started %6.2f  ready %6.2f", l.pod.Name,
			l.created.Sub(begin).Seconds(), l.started.Sub(begin).Seconds(), l.ready.Sub(begin).Seconds())
	}
}
