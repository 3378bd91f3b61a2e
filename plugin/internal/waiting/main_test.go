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

// patience bounds the waits for necessary events. No result depends on its length.
const patience = time.Minute

// aChooser returns the Chooser of a standalone daemon that holds no pod. o adjusts it.
func aChooser(o Options) *Chooser {
	c, _ := aLimitedChooser(o)
	return c
}

// aLimitedChooser is aChooser with its limiter.
func aLimitedChooser(o Options) (*Chooser, *throttle.Limiter) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	limiter := throttle.New(time.Now(), throttle.Settings{})
	o.Log, o.Board = log, turns.NewBoard()
	o.Observer = observe.New(observe.Options{Log: log, Events: observe.NoEvents{}, Nodes: func() int { return 0 }})
	o.Starts = starts.New(starts.Options{
		Limiter: limiter, Matcher: policies.New(limiter, false), Observer: o.Observer, Board: o.Board,
		Log: log, Waitable: o.Gate.Timeout, Forgotten: func(string) {}, PoliciesChanged: func(policies.Changes) {}, Roots: usage.Roots{Proc: "/nowhere", Cgroup: "/nowhere"},
		Timing: starts.DefaultTiming(), Round: func(time.Time, []throttle.TicketView) (map[string]bool, time.Time) { return nil, time.Time{} },
	})
	return New(o), limiter
}
