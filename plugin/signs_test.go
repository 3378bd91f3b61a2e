package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// quickSigns judges within moments what takes seconds on a node. A program that
// burns uses more than so little CPU also where many others do.
func quickSigns(p *pacer) {
	p.signs.run, p.signs.window, p.signs.every = 300*time.Millisecond, time.Second, 20*time.Millisecond
	p.signs.cores = 0.001
}

// runsFor has a pod end by its CPU use only after its containers have run for so long:
// not before the runtime has told of the exit of one that ended.
func runsFor(d time.Duration) nodeOption {
	return tuned(func(p *pacer) {
		quickSigns(p)
		p.signs.run = d
	})
}

// burnUntil is a program that burns CPU until a file is there, and then sleeps.
func burnUntil(file string) []string {
	return []string{"sh", "-c", `while [ ! -e "$0" ]; do :; done; sleep 600`, file}
}

// idle is a program that gives back what it would burn.
var idle = []string{"sleep", "600"}

func TestStandaloneAStartEndsWhenThePodUsesLittleCPU(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, oneAtATime, standalone, tuned(quickSigns))
	p := n.strangePod("jvm").runs()
	p.startsNow("app", burnUntil(done)...)
	// It is measured many times over while it burns.
	n.eventually("it has run for longer than it has to", func() bool {
		return time.Since(n.view(p.uid).Admitted) > 2*n.p.signs.window
	})
	assert.Equal(t, throttle.Starting, p.is(), "it burns CPU")
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	p.becomes(throttle.Started, throttle.Inferred)
}

func TestSignsAreReadAtTheirPaceHoweverOftenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	p := newPacer(Options{ProcRoot: "/proc", CgroupRoot: "/nowhere", Log: log}, nil, newMetrics())
	now := time.Now()
	r := newRecord(&api.PodSandbox{Uid: "pod", Namespace: "default", Name: "pod"})
	p.records["pod"] = r
	p.limiter.Join(now, throttle.Request{UID: "pod", Name: "default/pod"}).TryStart(now)
	r.started(&api.Container{Id: "c", Name: "app", Pid: uint32(os.Getpid())}, now)
	p.publish()
	due := now.Add(p.signs.every)
	for at := now; at.Before(due); at = at.Add(10 * time.Millisecond) {
		require.Equal(t, due, p.review(at))
	}
	require.Len(t, p.starting["pod"].samples, 1)
	require.Equal(t, due.Add(p.signs.every), p.review(due))
	require.Len(t, p.starting["pod"].samples, 2)
}

func TestWhileTheAPIServerIsAwayAStartEndsByItsSigns(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(quickSigns))
	p := n.occupy("known")
	n.pods.goAway()
	n.p.wake()
	p.becomes(throttle.Started, throttle.Inferred)
}

func TestAPodWhoseCPUUseCannotBeReadEndsByTime(t *testing.T) {
	t.Parallel()
	blind := with(func(o *Options) {
		o.CgroupRoot = "/nowhere"
		o.ProcRoot = "/nowhere"
	})
	n := newNode(t, oneAtATime, standalone, blind, tuned(quickSigns))
	p := n.strangePod("blind").runs()
	p.startsNow("app", idle...)
	p.becomes(throttle.Started, throttle.Inferred)
	v := n.view(p.uid)
	assert.GreaterOrEqual(t, v.Ended.Sub(v.Admitted), n.p.signs.run)
	n.eventually("nothing is kept of a start that ended", func() bool { return len(n.p.startingUIDs()) == 0 })
}

func TestStandaloneAPodThatEndedFreesItsSlot(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, runsFor(patience))
	p := n.strangePod("job").runs()
	p.startsNow("app", "true")
	p.becomes(throttle.Started, throttle.Completed)
}

func TestStandaloneARestartIsNotOverBeforeItBegan(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, runsFor(4*time.Second))
	p := n.strangePod("crashes").runs()
	p.startsNow("app", "true")
	p.becomes(throttle.Started, throttle.Completed)
	ctr := p.creates("app") // admitted, and not started yet
	p.becomes(throttle.Starting, throttle.WithinLimits)
	for range 5 {
		p.stillStarting("the exit was that of the start before")
	}
	require.NoError(t, ctr.Start(n.ctx))
	p.becomes(throttle.Started, throttle.Inferred)
}

func TestStandaloneAPodThatIsRemovedGivesItsPlaceUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone)
	holder := n.strangePod("holder").runs()
	holder.startsNow("app")
	p := n.strangePod("removed").runs()
	require.NoError(t, p.sandbox.Remove(n.ctx))
	p.becomes(throttle.Gone, throttle.SandboxGone)
	require.NoError(t, holder.sandbox.Remove(n.ctx))
	n.slotsFree()
	n.eventually("no record is left", func() bool { return n.records() == 0 })
}

func TestStandaloneARefusedPodKeepsItsPlaceWhenAnOlderSandboxIsCleared(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.RefuseAt = RefuseSandbox }))
	p := n.strangePod("restarted").runs()
	p.startsNow("app")
	old := p.sandbox
	require.NoError(t, old.Stop(n.ctx))
	p.becomes(throttle.Gone, throttle.SandboxGone)

	holder := n.strangePod("holder").runs()
	holder.startsNow("app")
	for i := 0; ; i++ { // until there is no more room near the turn
		if n.strangePod("crowd").run() != nil {
			break
		}
	}
	require.Error(t, p.run())
	require.NoError(t, old.Remove(n.ctx))
	assert.Equal(t, throttle.Waiting, p.is())
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	s, m := newSigns(Options{ProcRoot: "/proc"}), &measured{}
	now := time.Unix(0, 0)
	used := 0.0
	step := func(d time.Duration, cores float64) bool {
		now = now.Add(d)
		used += cores * d.Seconds()
		return s.quiet(m, usage{at: now, cpu: used})
	}
	assert.False(t, s.quiet(m, usage{at: now, cpu: used}), "nothing to compare with")
	assert.False(t, step(time.Second, 0), "the window is not full")
	assert.True(t, step(time.Second, 0))
	assert.False(t, step(time.Second, 1), "half a core over the window")
	assert.False(t, step(time.Second, 0), "the busy second is still in it")
	assert.True(t, step(time.Second, 0.1))
	assert.True(t, step(time.Hour, 0.19), "after a gap")
	assert.False(t, step(2*time.Second, 0.21))
	m = &measured{}
	assert.False(t, step(time.Hour, 0), "nothing is known of it any more")
}

// The pod watch may ask about a start whose end was published a moment ago.
func TestNothingIsMeasuredOfAStartThatHasEnded(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{ProcRoot: "/proc", CgroupRoot: "/nowhere", Log: discard()}, nil, newMetrics())
	now := time.Now()
	r := newRecord(&api.PodSandbox{Uid: "pod", Namespace: "default", Name: "pod"})
	p.records["pod"] = r
	ticket := p.limiter.Join(now, throttle.Request{UID: "pod", Name: "default/pod"})
	ticket.TryStart(now)
	r.started(&api.Container{Id: "c", Name: "app", Pid: uint32(os.Getpid())}, now)
	p.publish()
	p.review(now)
	require.Len(t, p.starting["pod"].samples, 1)
	ticket.End(now, throttle.Ready)
	p.publish()
	p.judgeBySigns(now.Add(time.Second), ticket)
	assert.Empty(t, p.starting)
}
