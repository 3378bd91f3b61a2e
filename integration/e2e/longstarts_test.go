//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// gateExpired is the metric of the pods that waited in the gate in vain.
const gateExpired = "pod_pacemaker_gate_expired_total"

// retry is within what kubelet tries a refused pod again, and longRatio is how much longer than its limit needs a herd
// of long starts may take.
const (
	retry     = 15 * time.Second
	longRatio = 1.15
)

// Starts take longer than a pod can wait in the gate. No pod waits there in vain, so none shows an error.
func TestStartsThatOutlastTheGate(t *testing.T) {
	d := startDaemon(t, "--gate-timeout", "20s")
	d.configure(t, longConfig("maxConcurrent: {value: 2}"))
	s := watchLongStarts(t, d)
	deploy(t, s.ns, "long", 6, herdPod(0, sleeping("30s")))
	s.awaitReady(t, 6)
	s.assertQuiet(t, 2)
	// By refusal a slot may be empty at the begin and at the end, until kubelet has tried a pod again.
	s.assertTook(t, slices.Repeat([]time.Duration{30 * time.Second}, 6), 2, 2*retry)
}

// longConfig is a config under which only its throttle settings decide how many pods start: pods that idle make no
// progress, and would be lent slots, and no pod is overdue.
func longConfig(throttle string) string {
	return "{throttleConfig: {" + throttle + ", noProgressAfter: 0s}, maxWait: 1h, startTimeout: 1h}"
}

// longStarts is a namespace of pods whose starts are long, seen by watch.
type longStarts struct {
	d     *daemon
	ns    string
	begin time.Time
	seen  *looks
	stop  func()
}

func watchLongStarts(t *testing.T, d *daemon) *longStarts {
	t.Helper()
	s := &longStarts{d: d, ns: namespace(t), begin: time.Now()}
	s.seen, s.stop = watchLooks(t, s.ns)
	return s
}

func (s *longStarts) awaitReady(t *testing.T, pods int) {
	t.Helper()
	polledFor(t, time.Hour, time.Second, "all pods are ready", func() bool { return allReady(t, s.ns, pods) })
}

// assertQuiet ends the watch. No pod looked like failing, no restart is counted, and at most so many pods started at a
// time; zero: any number.
func (s *longStarts) assertQuiet(t *testing.T, limit int) {
	t.Helper()
	s.stop()
	all := lives(t, s.ns)
	logLives(t, s.begin, all)
	states := map[string]int{}
	for _, state := range s.seen.all() {
		states[state] = len(s.seen.pods(state))
	}
	most := mostOfStarted(all)
	figure(t, "%d pods, at most %d starting at a time; pods that showed a state: %v; %v waits in the gate expired", len(all), most, states, s.d.metric(t, gateExpired))
	for _, state := range []string{"RunContainerError", "CrashLoopBackOff", string(corev1.PodFailed)} {
		assert.Zero(t, states[state], state)
	}
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
	}
	if limit > 0 {
		assert.LessOrEqual(t, most, limit, "pods between the start of their process and ready")
	}
}

// assertTook checks the makespan against that of the same starts, in the order in which they began, with no slot empty.
func (s *longStarts) assertTook(t *testing.T, starts []time.Duration, limit int, more time.Duration) {
	t.Helper()
	slots := make([]time.Duration, limit)
	for _, takes := range starts {
		slices.Sort(slots)
		slots[0] += takes
	}
	all := lives(t, s.ns)
	took, bound := lastReady(all).Sub(all[0].started), slices.Max(slots)
	figure(t, "all ready after %.1f s; with no slot empty %.1f s: %.2f times", took.Seconds(), bound.Seconds(), took.Seconds()/bound.Seconds())
	assert.LessOrEqual(t, took.Seconds(), longRatio*bound.Seconds()+more.Seconds())
}
