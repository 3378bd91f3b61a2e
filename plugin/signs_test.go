package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// quickSigns shortens the times by which a start is judged. The CPU limit is low, so that a busy program exceeds it also on
// a busy machine.
func quickSigns(r *tuning) {
	r.timing.RunFor = 300 * time.Millisecond
	r.timing.Quiet = usage.QuietOptions{Window: time.Second, Cores: 0.001}
	r.timing.Stalls.Every = 20 * time.Millisecond
}

// runsFor sets how long containers must run before a start can end by its CPU use: not before the runtime has reported the
// exit of a container that ended.
func runsFor(d time.Duration) nodeOption {
	return tuned(func(r *tuning) {
		quickSigns(r)
		r.timing.RunFor = d
	})
}

// burnUntil is a program that burns CPU until a file exists, and then sleeps.
func burnUntil(file string) []string {
	return []string{"sh", "-c", `while [ ! -e "$0" ]; do :; done; exec sleep 600`, file}
}

// stillStarting asserts that the report did not end the start.
func (p *testPod) stillStarting(why string) {
	p.n.t.Helper()
	p.n.d.starts.Wake()
	ctx, cancel := context.WithTimeout(p.n.ctx, patience)
	defer cancel()
	require.NoError(p.n.t, p.n.d.starts.Alive(ctx), "the loop has looked at all starts")
	assert.Equal(p.n.t, throttle.Starting, p.is(), why)
}

// idle is a program that uses no CPU.
var idle = []string{"sleep", "600"}

func TestStandaloneAStartEndsWhenThePodUsesLittleCPU(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, oneAtATime, standalone, tuned(quickSigns))
	p := n.strangePod("jvm").runs()
	p.startsNow("app", burnUntil(done)...)
	// The pod is measured many times while it burns.
	n.eventually("it has run for longer than the minimum", func() bool {
		return time.Since(n.view(p.uid).Admitted) > 2*time.Second
	})
	assert.Equal(t, throttle.Starting, p.is(), "the pod burns CPU")
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	p.becomes(throttle.Started, reasons.Inferred)
}

func TestWhileTheAPIServerIsAwayAStartEndsByItsSigns(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(quickSigns))
	p := n.occupy("known")
	n.pods.goAway()
	n.d.starts.Wake()
	p.becomes(throttle.Started, reasons.Inferred)
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
	p.becomes(throttle.Started, reasons.Inferred)
	v := n.view(p.uid)
	assert.GreaterOrEqual(t, v.Ended.Sub(v.Admitted), 300*time.Millisecond)
}

func TestStandaloneAPodThatEndedFreesItsSlot(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, runsFor(patience))
	p := n.strangePod("job").runs()
	p.startsNow("app", "true")
	p.becomes(throttle.Started, reasons.Completed)
}

func TestStandaloneAnEarlierExitDoesNotEndARestart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, runsFor(4*time.Second))
	p := n.strangePod("crashes").runs()
	p.startsNow("app", "true")
	p.becomes(throttle.Started, reasons.Completed)
	ctr := p.creates("app") // admitted, and not started yet
	p.becomes(throttle.Starting, reasons.WithinLimits)
	for range 5 {
		p.stillStarting("the exit belongs to the earlier start")
	}
	require.NoError(t, ctr.Start(n.ctx))
	p.becomes(throttle.Started, reasons.Inferred)
}

func TestStandaloneARemovedPodLosesItsPlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone)
	holder := n.strangePod("holder").runs()
	holder.startsNow("app")
	p := n.strangePod("removed").runs()
	require.NoError(t, p.sandbox.Remove(n.ctx))
	p.becomes(throttle.Gone, reasons.SandboxGone)
	require.NoError(t, holder.sandbox.Remove(n.ctx))
	n.slotsFree()
	n.eventually("no record is left", func() bool { return n.records() == 0 })
}

func TestStandaloneARefusedPodKeepsItsPlaceWhenAnOlderSandboxIsCleared(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, standalone, with(func(o *Options) { o.RefuseAt = waiting.RefuseSandbox }))
	p := n.strangePod("restarted").runs()
	p.startsNow("app")
	old := p.sandbox
	require.NoError(t, old.Stop(n.ctx))
	p.becomes(throttle.Gone, reasons.SandboxGone)

	holder := n.strangePod("holder").runs()
	holder.startsNow("app")
	for i := 0; ; i++ { // until no more reservations are free
		if n.strangePod("crowd").run() != nil {
			break
		}
	}
	require.Error(t, p.run())
	require.NoError(t, old.Remove(n.ctx))
	assert.Equal(t, throttle.Waiting, p.is())
}
