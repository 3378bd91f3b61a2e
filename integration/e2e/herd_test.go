//go:build e2e

package e2e

import (
	"runtime"
	"testing"
	"time"
)

// The herd: pods that each need so many CPU-seconds before they are ready.
const (
	herdPods       = 16
	herdCPUSeconds = 4.0
)

func idealHerd() time.Duration {
	return time.Duration(herdPods * herdCPUSeconds / float64(runtime.NumCPU()) * float64(time.Second))
}

// A Deployment of pods with readiness and liveness probes, and no startup probe:
// the liveness probe kills what is starved.
func TestHerd(t *testing.T) {
	pacedHerd(t, withLiveness)
}

// pacedHerd runs the herd at two starts at a time.
func pacedHerd(t *testing.T, shapes ...shape) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	repeated(t, func(t *testing.T) string {
		h := runHerd(t, d, shapes...)
		figure(t, "%s", h)
		assertNobodyUnpaced(t, d)
		return h.judgePaced(t)
	})
}

// runHerd starts the herd and waits until it is ready, or late.
func runHerd(t *testing.T, d *daemon, shapes ...shape) herd {
	t.Helper()
	h := herdIn(t, namespace(t), shapes...)
	logLives(t, h.begin, h.all)
	if !h.late {
		d.idle(t)
	}
	return h
}

// herdIn is runHerd on a node that may have no daemon.
func herdIn(t *testing.T, ns string, shapes ...shape) herd {
	t.Helper()
	before := readMachine(t)
	h := herd{begin: before.at}
	deploy(t, ns, "herd", herdPods, herdPod(herdCPUSeconds, shapes...))
	for !allReady(t, ns, herdPods) && !h.late {
		after(t.Context(), 100*time.Millisecond)
		h.late = time.Since(h.begin) > patience
	}
	h.machine = before.since(t)
	h.all = lives(t, ns)
	return h
}

// logLives writes the timeline of a scenario to its log.
func logLives(t *testing.T, begin time.Time, all []life) {
	t.Helper()
	for _, l := range all {
		t.Logf("%-28s created %6.2f  started %6.2f  ready %6.2f", l.pod.Name,
			l.created.Sub(begin).Seconds(), l.started.Sub(begin).Seconds(), l.ready.Sub(begin).Seconds())
	}
}
