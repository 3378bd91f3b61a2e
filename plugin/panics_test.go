package plugin

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestTheDaemonContinuesWhenItsReportsPanic(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Log.AddHook(&panicsAt{text: "start of pod", again: true}) }))
	holder := n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
	a.pod.becomes(throttle.Starting, reasons.WithinLimits)
	n.eventually("the panics are counted", func() bool { return counted(t, n, "pod_pacemaker_panics_total") >= 3 })
}

func TestAPodWatchThatPanicsEndsNothing(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	d := &Daemon{observer: observe.New(observe.Options{Log: log, Events: &observe.Recorder{}, Nodes: func() int { return 1 }})}
	assert.NotPanics(t, func() { d.podChanged(podwatch.Pod{Namespace: "ns", Name: "unforeseen"}, false) })
	require.Len(t, logged.AllEntries(), 1)
	assert.Contains(t, logged.LastEntry().Message, "podChanged for pod ns/unforeseen")
}

// panicsAt panics once, or again and again, at a line of the log that contains its text.
type panicsAt struct {
	text  string
	again bool
	done  atomic.Bool
}

func (*panicsAt) Levels() []logrus.Level { return logrus.AllLevels }

func (h *panicsAt) Fire(e *logrus.Entry) error {
	if strings.Contains(e.Message, h.text) && (h.done.CompareAndSwap(false, true) || h.again) {
		panic("at a line of the log")
	}
	return nil
}

// A stub serves one connection, and must not be used after a panic.
func TestAStubThatPanicsIsReplacedWithItsConnection(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, oneAtATime)
	log := discard()
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(&panicsAt{text: "Using given plugin connection"})
	n.options.Log = log
	require.NoError(t, n.rt.Start())
	n.startDaemon()
	n.connected()
	n.eventually("the daemon is connected", func() bool { return n.d.connection.Paces() == nil })
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_panics_total"), 0)
}
