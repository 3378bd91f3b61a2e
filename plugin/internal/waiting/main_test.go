package waiting

import (
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what has to happen; nothing depends on its length.
const patience = time.Minute

// aChooser gives a Chooser of a standalone daemon that holds nobody; o says what is particular to it.
func aChooser(o Options) *Chooser {
	log := logrus.New()
	log.SetOutput(io.Discard)
	limiter := throttle.New(time.Now(), throttle.Settings{})
	o.Log, o.Board, o.Breaker = log, turns.NewBoard(), NewBreaker(0)
	o.Observer = observe.New(observe.Options{Log: log, Events: observe.NoEvents{}, Nodes: func() int { return 0 }})
	o.Starts = starts.New(starts.Options{
		Limiter: limiter, Policies: policies.New(policies.Options{Limiter: limiter, Log: log}), Observer: o.Observer, Board: o.Board,
		Log: log, Waitable: o.Gate.Timeout, Forgotten: o.Breaker.Forget, Roots: usage.Roots{Proc: "/nowhere", Cgroup: "/nowhere"},
		Timing: starts.DefaultTiming(), Round: func(time.Time, throttle.Snapshot) time.Time { return time.Time{} },
	})
	return New(o)
}
