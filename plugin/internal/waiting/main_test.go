package waiting

import (
	"cmp"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds the waits for necessary events. No result depends on its length.
const testTimeout = time.Minute

// aChooser returns the Chooser of a daemon that holds no pod. o adjusts it; without Pods, the daemon is standalone.
func aChooser(o Options) *Chooser {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	o.Observer = cmp.Or(o.Observer, anObserver(silent))
	timing := starts.DefaultTiming()
	timing.Stalls.Every = 24 * time.Hour // no slot is lent
	o.Starts = starts.New(starts.Options{
		Pods: o.Pods, Observer: o.Observer,
		Memory: learning.New("", costs.Machine{}, silent), Log: silent, Waitable: o.Gate.Timeout, Timing: timing,
		PoliciesChanged: func(policies.Changes) {}, Roots: usage.Roots{Proc: "/nowhere", Cgroup: "/nowhere"},
	})
	c := New(o)
	o.Starts.Link(starts.Links{Round: c.Room.Round, Forgotten: c.Forget})
	return c
}

// anObserver returns an observer with that log, which writes no events.
func anObserver(log logrus.FieldLogger) *observe.Observer {
	return observe.New(observe.Options{Log: log, Events: &observe.Recorder{}, Nodes: func() int { return 1 }})
}
