//go:build e2e

package e2e

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// pacedHerd runs the herd at two starts at a time. Where probes killed pods while
// other work of the machine took more CPU than half, the run shows nothing, and is
// repeated.
func pacedHerd(t *testing.T, shapes ...shape) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	const tries = 3
	for try := 1; ; try++ {
		begin, all := runHerd(t, d, shapes...)
		took := lastReady(all).Sub(begin)
		if killed := restarted(all); killed > 0 && took > 2*idealHerd() && try < tries {
			t.Logf("try %d took %.1f s: the machine was busy with something else; %d restarts", try, took.Seconds(), killed)
			continue
		}
		assertPaced(t, all)
		figure(t, "%d pods all ready after %.1f s, ideal %.1f s, ratio %.2f; 0 killed by probes",
			herdPods, took.Seconds(), idealHerd().Seconds(), took.Seconds()/idealHerd().Seconds())
		return
	}
}

// runHerd starts the herd and waits until it is ready.
func runHerd(t *testing.T, d *daemon, shapes ...shape) (begin time.Time, all []life) {
	t.Helper()
	ns := namespace(t)
	begin = time.Now()
	deploy(t, ns, "herd", herdPods, herdPod(herdCPUSeconds, shapes...))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herdPods) })
	all = lives(t, ns)
	logLives(t, begin, all)
	d.idle(t)
	return begin, all
}

func assertPaced(t *testing.T, all []life) {
	t.Helper()
	assert.Len(t, all, herdPods)
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
		assert.Equal(t, 1, l.attempts, "containers of %s", l.pod.Name)
		assert.False(t, l.started.IsZero() || l.ready.IsZero(), "%s: started %v, ready %v", l.pod.Name, l.started, l.ready)
	}
	assert.LessOrEqual(t, mostStarting(all), 2, "pods between the start of their process and ready")
}

// logLives writes the timeline of a scenario to its log.
func logLives(t *testing.T, begin time.Time, all []life) {
	t.Helper()
	for _, l := range all {
		t.Logf("%-28s created %6.2f  started %6.2f  ready %6.2f", l.pod.Name,
			l.created.Sub(begin).Seconds(), l.started.Sub(begin).Seconds(), l.ready.Sub(begin).Seconds())
	}
}
