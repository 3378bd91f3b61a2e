package plugin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestPointOfTheTimeline(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var signals throttle.Signals
	signals[throttle.SignalCPU] = throttle.Reading{Value: 97.04, To: now}
	signals[throttle.SignalCPUPressure] = throttle.Reading{Value: 50, To: now, Err: errors.New("blind")}
	s := throttle.Snapshot{
		Limit: 2, Waiting: make([]throttle.TicketView, 3),
		Starting: []throttle.TicketView{{Slot: true}, {Slot: true}, {Slot: false}},
	}
	assert.Equal(t, admin.Point{Time: now, Waiting: 3, Starting: 2, Slots: 2, CPU: new(97.0)}, newPoint(now, s, signals),
		"a blind signal and an unmeasured signal are gaps")
}

// While a pod waits, the daemon adds points to the timeline and measures the node, although no client asks for the timeline
// and no limit needs the signals.
func TestTimelineRemembersAHerd(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) {
		o.ConfigFile, o.HTTPAddress, o.ProcRoot = writeConfig(t, oneAtATime), freeAddress(t), "/proc"
	}))
	require.NoError(t, n.rt.Start())
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	n.runs(d)
	n.connected()
	n.strangePod("holder").runs().startsNow("app")
	_, err = n.strangePod("waiting").runs().create("app")
	require.Error(t, err, "the pod is refused, because its restart policy is unknown")
	n.eventually("the timeline has a point with both pods and the CPU", func() bool {
		for _, p := range d.timeline.Points() {
			if p.Waiting == 1 && p.Starting == 1 && p.Slots == 1 && p.CPU != nil {
				return true
			}
		}
		return false
	})
}

func TestTheDaemonContinuesWhenTheTimelinePanics(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) {
		o.ConfigFile, o.HTTPAddress = writeConfig(t, oneAtATime), freeAddress(t)
	}))
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	d.sensors.sampler = nil
	said := n.logged()
	n.runs(d)
	n.eventually("the timeline has panicked more than once", func() bool {
		d.Timeline() // so that the daemon measures
		return strings.Count(said(), "part=timeline") >= 2
	})
}
