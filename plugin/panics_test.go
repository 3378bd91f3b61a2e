package plugin

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestAPartThatPanicsRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(Options{Log: discard()}, nil, newMetrics())
		runs := 0
		done := errors.New("done")
		begin := time.Now()
		err := p.supervised(t.Context(), "part", func(context.Context) error {
			if runs++; runs < 4 {
				panic("broken")
			}
			return done
		})
		require.ErrorIs(t, err, done)
		assert.Equal(t, 4, runs)
		assert.Equal(t, 3*restartAfter, time.Since(begin))
	})
}

func TestAPartThatPanicsEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := newPacer(Options{Log: discard()}, nil, newMetrics())
	require.NoError(t, p.supervised(ctx, "part", func(context.Context) error {
		cancel()
		panic("broken")
	}))
}

func TestThePacerGoesOnWhenTellingPanics(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(func(p *pacer) { p.podEvents = nil }))
	holder := n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
	a.pod.becomes(throttle.Starting, throttle.WithinLimits)
	n.eventually("the panics are counted", func() bool { return counted(t, n, "pod_pacemaker_panics_total") >= 3 })
}

func TestAHandlerThatPanicsLeavesTheNextOneItsLock(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{Log: discard()}, nil, newMetrics())
	p.records = nil // to take note of a pod panics
	h := &handlers{p: p}
	require.NoError(t, h.PostStartContainer(t.Context(), &api.PodSandbox{Uid: "uid"}, &api.Container{Id: "id"}))
	require.InDelta(t, 1, testutil.ToFloat64(p.metrics.panics.WithLabelValues("PostStartContainer")), 0)
	require.True(t, p.mu.TryLock())
	p.mu.Unlock()
}

func TestTheRuntimeGoesOnWhenTheStubPanics(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	reply, err := n.d.connection.intercept(t.Context(), nil, &ttrpc.UnaryServerInfo{FullMethod: "/nri/CreateContainer"},
		func(context.Context, func(any) error) (any, error) { panic("broken") })
	require.NoError(t, err)
	assert.NotNil(t, reply, "an error would fail the pod")
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_panics_total"), 0)
}

func TestAPodWatchThatTellsNonsenseEndsNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	assert.NotPanics(t, func() {
		defer n.p.caught("podChanged")
		panic("a pod that nobody thought of")
	})
	n.occupy("paced")
}

func TestARoundGoesOnWithTheOtherPodsWhenOnePanics(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{Log: discard(), ProcRoot: "/nowhere", CgroupRoot: "/nowhere"}, nil, newMetrics())
	now := time.Now()
	p.limiter.Configure(now, throttle.Settings{MaxConcurrent: 1})
	uids := []string{"broken", "1", "2", "3", "4"}
	for _, uid := range uids {
		p.records[uid] = newRecord(&api.PodSandbox{Uid: uid})
		p.records[uid].exit(&container{id: "c", name: "app", running: true}, now)
		p.limiter.Adopt(now, throttle.Request{UID: uid}, now)
	}
	p.records["broken"].containers["c"] = nil
	p.limiter.Join(now, throttle.Request{UID: "waits"}).Wait(now)
	p.publish()
	panics := func(part string) float64 { return testutil.ToFloat64(p.metrics.panics.WithLabelValues(part)) }

	require.NotPanics(t, func() { p.findStalls(now) })
	require.NotPanics(t, func() { p.review(now.Add(time.Minute)) })
	for _, uid := range uids {
		_, reason := p.limiter.Lookup(uid).Status()
		if uid == "broken" {
			assert.Equal(t, throttle.Adopted, reason)
			continue
		}
		assert.Equal(t, throttle.Completed, reason, uid)
		assert.NotNil(t, p.stalls.pods[uid], uid)
	}
	assert.InDelta(t, 1, panics("findStalls"), 0)
	assert.InDelta(t, 1, panics("review"), 0)
}

// panicsAt panics once, at the first line of the log that contains its text.
type panicsAt struct {
	text string
	done atomic.Bool
}

func (*panicsAt) Levels() []logrus.Level { return logrus.AllLevels }

func (h *panicsAt) Fire(e *logrus.Entry) error {
	if strings.Contains(e.Message, h.text) && h.done.CompareAndSwap(false, true) {
		panic(h.text)
	}
	return nil
}

// A stub serves one connection: what is left of one that panicked must not be used.
func TestAStubThatPanicsIsReplacedWithItsConnection(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, oneAtATime)
	log := discard()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(&panicsAt{text: "Using given plugin connection"})
	n.options.Log = log
	require.NoError(t, n.rt.Start(n.ctx))
	n.startDaemon()
	n.connected()
	n.eventually("it is connected", func() bool { return n.d.connection.paces() == nil })
	assert.True(t, n.d.connection.isConfigured(3), "the first began and ended, and another began")
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_panics_total"), 0)
}
