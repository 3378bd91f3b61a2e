package waiting

import (
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// story returns the log lines that say why a pod waits or starts, from the level info.
func (n *node) story(uid string) (lines []*logrus.Entry) {
	for _, e := range n.log.AllEntries() {
		if e.Data["pod_uid"] == uid && e.Data["reason"] != nil && e.Level <= logrus.InfoLevel {
			lines = append(lines, e)
		}
	}
	return lines
}

// The log lines of one pod are enough to understand what happened to it.
func TestTheLogTellsOnePodsStory(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		first := n.pod("ahead").runs()
		ahead := first.waits("app")
		p := n.pod("story").runs()
		c := p.makes("app")
		hook := c.hookAsks()
		n.passes(7 * time.Second)
		holder.getsReady()
		require.True(t, ahead.result().Go)
		first.isDeleted()
		require.True(t, hook.result().Go)
		c.runs()
		n.passes(2 * time.Second)
		p.getsReady()
		n.passes(0)

		lines := n.story("story")
		require.Len(t, lines, 3)
		assert.Equal(t, "pod default/story waits in the gate, place 2: Concurrency (1 of 1 starting)", lines[0].Message)
		assert.Equal(t, "start of pod default/story admitted after 7s", lines[1].Message)
		assert.Equal(t, "start of pod default/story ended after 2s: Ready", lines[2].Message)
		for _, line := range lines {
			assert.Equal(t, []any{"default", "story", c.GetId()}, []any{line.Data["pod_namespace"], line.Data["pod_name"], line.Data["container_id"]})
		}
		assert.Equal(t, 2, lines[0].Data["place"])
		assert.Positive(t, lines[1].Data["wait_ms"])
	})
}

func TestARefusalIsLoggedOnceInAWait(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		job := n.pod("job", restarted("Never")).runs()
		for range 2 {
			_, err := job.create("app")
			require.Error(t, err)
		}
		n.passes(0)
		lines := n.story("job")
		require.Len(t, lines, 1)
		assert.Equal(t, "pod default/job is refused at the container until kubelet tries again: Concurrency (1 of 1 starting)", lines[0].Message)
		assert.Equal(t, reasons.Concurrency, lines[0].Data["reason"])
		assert.NotEmpty(t, lines[0].Data["container_id"])
		assert.EqualValues(t, RefuseContainer, lines[0].Data["at"])
		assert.Equal(t, map[string]float64{string(reasons.Concurrency): 2}, n.counted("refusals_total"))
		assert.InDelta(t, 2*containerRefusalCPU.Seconds(), n.counted("refusal_cpu_seconds_total")[""], 1e-9)
	}, refuseAt(RefuseContainer))
}

func TestAPodThatWaitsInTheRoomIsLoggedOnce(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		n.pod("inside", restarted("Never")).entersRoom()
		n.passes(time.Minute)
		lines := n.story("inside")
		require.Len(t, lines, 1)
		assert.Equal(t, "pod default/inside waits in the waiting room: Concurrency (1 of 1 starting)", lines[0].Message)
		assert.Equal(t, reasons.Concurrency, lines[0].Data["reason"])
	})
}

// podEvents keeps the events on pods. Only the loop writes them.
type podEvents []string

// Pod implements observe.EventWriter.
func (e *podEvents) Pod(_, name, _, _, message string) { *e = append(*e, name+": "+message) }

// Node implements observe.EventWriter.
func (e *podEvents) Node(string, string, string) {}

// Before the first pod of a herd has its slot, no limit holds those in the room. kubelet does not have to retry them.
func TestAPodInTheRoomIsBehindOthersWhileASlotIsFree(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	events := podEvents{}
	onNode(t, func(t *testing.T, n *node) {
		n.log = logged
		n.freeze()
		for _, name := range []string{"a", "b"} {
			n.pod(name).entersRoom()
		}
		n.passes(10 * time.Second)
		lines := n.story("b")
		require.Len(t, lines, 1)
		assert.Equal(t, "pod default/b waits in the waiting room, place 2: Queued (1 ahead)", lines[0].Message)
		assert.Equal(t, reasons.Queued, lines[0].Data["reason"])
		assert.Contains(t, events, "default/b: Waits for its turn to start, place 2 of 2: Queued (1 ahead)")
	}, func(o *Options) {
		o.Observer = observe.New(observe.Options{Log: log, Events: &events, Nodes: func() int { return 1 }})
	})
}
