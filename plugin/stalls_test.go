package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestAStallBeginsWithTheFirstQuietWindow(t *testing.T) {
	t.Parallel()
	const window = 5 * time.Second
	begin := time.Unix(1000, 0)
	s, sign := stalls{cores: 0.1, inLine: 0.5, bytes: 1000}, &stallSign{}
	now := usage{at: begin, inLine: map[string]float64{}, moved: map[string]float64{}}
	step := func(cpu, inLine, moved float64) time.Time {
		now.at = now.at.Add(time.Second)
		now.cpu += cpu
		now.inLine = map[string]float64{"thread": now.inLine["thread"] + inLine}
		now.moved = map[string]float64{"process": now.moved["process"] + moved}
		return s.judge(sign, now, window)
	}
	steps := func(n int, cpu, inLine, moved float64) (since time.Time) {
		for range n {
			since = step(cpu, inLine, moved)
		}
		return since
	}
	assert.Zero(t, s.judge(sign, now, window))
	assert.Zero(t, steps(4, 0, 0, 0), "nobody knows yet")
	assert.Equal(t, begin, step(0, 0, 0), "since the window began")
	assert.Equal(t, begin, steps(60, 0.03, 0.3, 500), "as probes use on a busy node")
	assert.Zero(t, step(1, 0, 0), "it computes")
	assert.Zero(t, steps(4, 0, 0, 0), "it did within the window")
	assert.Equal(t, now.at.Add(-4*time.Second), step(0, 0, 0), "since it computed last")
	assert.Zero(t, steps(3, 0.02, 0.98, 0), "it would compute if it could")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, step(0, 0, 5001), "it reads")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, steps(5, 0.1, 0, 0), "slow is not stalled")
}

// quickStalls measures often.
func quickStalls(p *pacer) {
	p.stalls.every = 20 * time.Millisecond
	p.stalls.cores, p.stalls.inLine, p.stalls.bytes = 0.001, 0.001, 1
}

const lendsSoon = "spec: {throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 2s}}"

func TestAPodThatOnlyWaitsIsStalled(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, lendsSoon, tuned(quickStalls))
	holder := n.pod("jvm").runs()
	holder.startsNow("app", burnUntil(done)...)
	n.pod("waits").runs().waitsAtGate("app")
	begin := time.Now()
	n.eventually("it was measured for long enough", func() bool { return time.Since(begin) > 2*shortestStallWindow })
	assert.Zero(t, n.view(holder.uid).StalledSince, "it burns CPU")

	require.NoError(t, os.WriteFile(done, nil, 0o600))
	n.eventually("it makes no progress", func() bool { return !n.view(holder.uid).StalledSince.IsZero() })
}

// stalled gives since when the pod makes no progress, as far as a pacer that does not
// run has found at a time.
func stalled(p *pacer, now time.Time, uid string) time.Time {
	p.findStalls(now)
	v, _ := p.limiter.View(now, uid)
	return v.StalledSince
}

func TestStallsAreSoughtWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	proc, now := t.TempDir(), time.Now()
	log, logged := logtest.NewNullLogger()
	p := newPacer(Options{ProcRoot: proc, CgroupRoot: "/nowhere", Log: log}, nil, newMetrics())
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + oneAtATime))
	require.NoError(t, err)
	p.configure(now, crd.FromFile(parsed.Config), 1)
	holder := newRecord(&api.PodSandbox{Uid: "holder", Namespace: "default", Name: "holder"})
	p.records["holder"] = holder
	holder.started(&api.Container{Id: "c", Name: "app", Pid: 7}, now)
	p.limiter.Join(now, throttle.Request{UID: "holder", Name: "default/holder"}).TryStart(now)
	p.publish()
	logged.Reset()
	assert.Zero(t, p.findStalls(now), "nobody waits")

	waits := p.limiter.Join(now, throttle.Request{UID: "waits"})
	assert.Equal(t, now.Add(time.Second), p.findStalls(now))
	assert.Equal(t, now.Add(time.Second), p.findStalls(now.Add(time.Millisecond)), "not more often")
	for i := range 10 {
		assert.Zero(t, stalled(p, now.Add(time.Duration(i)*time.Second), "holder"), "nobody can tell")
	}
	require.Len(t, logged.AllEntries(), 1, "it is said once")
	assert.Contains(t, logged.LastEntry().Message, "cannot be read")
	assert.Equal(t, "holder", logged.LastEntry().Data["pod_name"])

	require.NoError(t, os.MkdirAll(filepath.Join(proc, "7"), 0o755))
	for file, content := range map[string]string{
		"stat": "7 (app) S 1 7 7 0 -1 4194560 0 0 0 0 5 5 0 0 20 0 1 0 0 0 0" + strings.Repeat(" 0", 29) + "\n", "io": "read_bytes: 0\nwrite_bytes: 0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(proc, "7", file), []byte(content), 0o600))
	}
	for i := range 5 {
		assert.Zero(t, stalled(p, now.Add(time.Duration(20+i)*time.Second), "holder"), "the window is not full")
	}
	assert.Equal(t, now.Add(20*time.Second), stalled(p, now.Add(25*time.Second), "holder"))

	waits.End(now.Add(25*time.Second), throttle.Deleted)
	assert.Zero(t, stalled(p, now.Add(26*time.Second), "holder"), "nobody waits any more")
	p.limiter.Join(now.Add(27*time.Second), throttle.Request{UID: "other"})
	p.settings.Store(&throttle.Settings{NoProgressAfter: -1})
	assert.Zero(t, p.findStalls(now.Add(28*time.Second)), "nothing is lent")
}
