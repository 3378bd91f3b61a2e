package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

func TestTheAdaptiveLimitIsToldHowStartsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason Reason
		after  time.Duration
		made   int
		lost   bool
	}{
		"ready":                          {Ready, time.Second, 1, false},
		"settled, later":                 {Settled, time.Minute, 1, false},
		"deleted":                        {Deleted, time.Minute, 0, false},
		"exited after a while":           {Exited, lostAfter, 0, true},
		"crash-loops after a while":      {CrashLoop, time.Minute, 0, true},
		"failed after a while":           {Failed, time.Minute, 0, true},
		"exited sooner than a probe can": {Exited, lostAfter - time.Second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}})
			n.attend("a")
			n.pass(c.after)
			n.end("a", c.reason)
			s := n.l.sampleLocked(n.now)
			require.Equal(t, c.made, s.Made)
			var lost time.Time
			if c.lost {
				lost = t0
			}
			require.Equal(t, lost, s.Lost, "when it was admitted")
		})
	}
}

func TestStartsThatWereUnderWayTellTheAdaptiveLimitNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}})
	n.l.Found(n.now, Request{UID: "made"}, t0)
	n.l.Found(n.now, Request{UID: "lost"}, t0)
	n.pass(time.Minute)
	n.end("made", Ready)
	n.end("lost", Exited)
	s := n.l.sampleLocked(n.now)
	require.Zero(t, s.Made)
	require.Zero(t, s.Lost)
}

func TestAClockThatIsSetBackTakesLossesAlong(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}})
	n.attend("a")
	n.pass(time.Minute)
	n.end("a", Exited)
	n.pass(-time.Hour)
	require.Equal(t, n.now.Add(-time.Minute), n.l.sampleLocked(n.now).Lost)
}
