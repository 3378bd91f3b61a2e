package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const loadBelowFour = `spec: {throttleConfig: {loadAvg: {maxLoad: "4"}}}`

// procTree is a /proc that a test writes: a load average, and no pressure.
type procTree struct {
	t    *testing.T
	root string
}

func newProcTree(t *testing.T, load string) procTree {
	p := procTree{t: t, root: t.TempDir()}
	p.load(load)
	return p
}

func (p procTree) path() string { return filepath.Join(p.root, "loadavg") }

func (p procTree) load(load string) {
	// In one step, because it may be read meanwhile.
	next := p.path() + ".next"
	require.NoError(p.t, os.WriteFile(next, []byte(load+" 1.00 1.00 1/100 1\n"), 0o600))
	require.NoError(p.t, os.Rename(next, p.path()))
}

func (p procTree) remove() { require.NoError(p.t, os.Remove(p.path())) }

// on makes the daemon measure the tree.
func (p procTree) on(o *Options) { o.ProcRoot = p.root }

// toldNode collects the events of the node.
type toldNode struct {
	observe.NoEvents
	mu   sync.Mutex
	told []string
}

func (n *toldNode) Node(kind, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, kind+" "+reason+": "+message)
}

func (n *toldNode) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.told...)
}

// signal returns a signal of the status.
func (n *node) signal(signal throttle.Signal) admin.Signal {
	all := admin.NewSignals(n.d.signals.Measure(), n.d.limiter.Snapshot(time.Now()).Settings)
	return all[signal]
}

// A limit whose signal cannot be measured opens, reports that once in the log, events and status, and holds again later.
func TestALimitWhoseSignalIsBlindSaysSoOnce(t *testing.T) {
	t.Parallel()
	proc, told := newProcTree(t, "1.00"), &toldNode{}
	hook := &logtest.Hook{}
	n := newNode(t, loadBelowFour, with(proc.on), tuned(func(r *tuning) { r.events = told }),
		with(func(o *Options) { o.Log.AddHook(hook) }))
	said := func(text string) (count int) {
		for _, e := range hook.AllEntries() {
			if strings.Contains(e.Message, text) && e.Data["signal"] == "load" {
				count++
			}
		}
		return count
	}
	n.occupy("starting") // sampled every half second
	require.NotNil(t, n.signal(throttle.SignalLoad).Value)

	proc.remove()
	n.eventually("the log says that the limit is open", func() bool { return len(told.all()) == 1 })
	s := n.signal(throttle.SignalLoad)
	assert.Nil(t, s.Value)
	assert.Contains(t, s.Blind, proc.path())
	assert.Contains(t, s.Blind, "absent")
	assert.InDelta(t, 4, s.Threshold, 0)
	n.pod("unpaced").runs().startsNow("app")
	assert.Equal(t, []v1alpha1.BlindSignal{{Signal: "load", Message: s.Blind}}, n.d.signals.Blind())

	proc.load("2.50")
	n.eventually("the log says that the limit holds again", func() bool { return len(told.all()) == 2 })
	assert.Empty(t, n.signal(throttle.SignalLoad).Blind)
	assert.Empty(t, n.d.signals.Blind())
	assert.Equal(t, 1, said("cannot be measured"))
	assert.Equal(t, 1, said("measured again"))
	assert.Equal(t, "Warning SignalBlind: The signal load cannot be measured, its limit is open: "+s.Blind, told.all()[0])
	assert.Equal(t, "Normal SignalMeasured: The signal load is measured again, its limit holds", told.all()[1])
	for _, e := range hook.AllEntries() {
		if e.Data["signal"] != nil {
			assert.Equal(t, "load", e.Data["signal"])
			assert.Contains(t, []logrus.Level{logrus.WarnLevel, logrus.InfoLevel}, e.Level)
		}
	}
}

func TestALimitThatIsBlindFromTheBeginningIsReported(t *testing.T) {
	t.Parallel()
	proc, told := newProcTree(t, "1.00"), &toldNode{}
	n := newNode(t, `spec: {throttleConfig: {pressure: {io: {some: "20"}}}}`, with(proc.on), tuned(func(r *tuning) { r.events = told }))
	n.pod("unpaced").runs().startsNow("app")
	require.Len(t, told.all(), 1, "it is reported before the limit is in force")
	assert.Contains(t, told.all()[0], filepath.Join(proc.root, "pressure", "io"))
	// The signal of a new limit is reported, and that of a removed limit is not.
	n.reconfigure(`spec: {throttleConfig: {pressure: {memory: {full: "20"}}}}`)
	n.eventually("the other limit is reported", func() bool { return len(told.all()) == 2 })
	assert.Contains(t, told.all()[1], "pressure.memory.full")
	blind := n.d.signals.Blind()
	require.Len(t, blind, 1, "no limit needs pressure.io.some any more")
	assert.Equal(t, "pressure.memory.full", blind[0].Signal)
}

// What a blind signal means depends on which limit needs it: only the signal's own limit opens.
func TestTheMessageOfABlindSignalNamesItsEffect(t *testing.T) {
	t.Parallel()
	for config, says := range map[string][]string{
		"{adaptive: {}}": {
			"cpu cannot be measured, the adaptive limit does without it",
			"pressure.cpu.some cannot be measured, the adaptive limit does without it",
			"pressure.io.some cannot be measured, the adaptive limit does without it",
		},
		`{pressure: {cpu: {some: "20"}}}`: {
			"cpu cannot be measured, the limit on CPU pressure is open",
			"pressure.cpu.some cannot be measured, its limit is open",
		},
		`{pressure: {cpu: {some: "20", minUtilization: "0"}}}`: {"pressure.cpu.some cannot be measured, its limit is open"},
	} {
		proc, told := newProcTree(t, "1.00"), &toldNode{}
		newNode(t, "spec: {throttleConfig: "+config+"}", with(proc.on), tuned(func(r *tuning) { r.events = told }))
		require.Len(t, told.all(), len(says), config)
		for i, text := range says {
			assert.Contains(t, told.all()[i], text)
		}
	}
}

func TestStatusAndMetricsShowSignalsThatNoLimitNeeds(t *testing.T) {
	t.Parallel()
	proc, told := newProcTree(t, "7.25"), &toldNode{}
	n := newNode(t, noLimit, standalone, with(proc.on), tuned(func(r *tuning) { r.events = told }))
	shown := n.d.Status().Signals
	require.Len(t, shown, len(throttle.Signals{}))
	s := shown[throttle.SignalLoad]
	require.NotNil(t, s.Value)
	assert.InDelta(t, 7.25, *s.Value, 0)
	assert.Zero(t, s.Threshold)
	assert.Contains(t, shown[throttle.SignalCPU].Blind, filepath.Join(proc.root, "stat"))
	assert.Empty(t, told.all(), "a signal without a limit is not reported")

	n.reconfigure(loadBelowFour)
	require.NoError(t, testutil.GatherAndCompare(n.d.observer.Registry(), strings.NewReader(`
# HELP pod_pacemaker_signal_blind 1 while a signal cannot be measured: its limit holds no start then, and adaptive works without it.
# TYPE pod_pacemaker_signal_blind gauge
pod_pacemaker_signal_blind{signal="cpu"} 1
pod_pacemaker_signal_blind{signal="iowait"} 1
pod_pacemaker_signal_blind{signal="load"} 0
pod_pacemaker_signal_blind{signal="pressure.cpu.some"} 1
pod_pacemaker_signal_blind{signal="pressure.io.full"} 1
pod_pacemaker_signal_blind{signal="pressure.io.some"} 1
pod_pacemaker_signal_blind{signal="pressure.memory.full"} 1
pod_pacemaker_signal_blind{signal="pressure.memory.some"} 1
# HELP pod_pacemaker_signal_threshold The value from which a signal holds starts. Absent where no limit is set.
# TYPE pod_pacemaker_signal_threshold gauge
pod_pacemaker_signal_threshold{signal="load"} 4
# HELP pod_pacemaker_signal_value Value of a signal, in percent; load in processes. Absent while it cannot be measured.
# TYPE pod_pacemaker_signal_value gauge
pod_pacemaker_signal_value{signal="load"} 7.25
`), "pod_pacemaker_signal_blind", "pod_pacemaker_signal_threshold", "pod_pacemaker_signal_value"))
	problems, err := testutil.GatherAndLint(n.d.observer.Registry())
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestASignalHoldsStartsAndLetsThemGo(t *testing.T) {
	t.Parallel()
	proc := newProcTree(t, "9.50")
	n := newNode(t, loadBelowFour, with(proc.on))
	a := n.pod("waits").runs().waitsAtGate("app")
	v := n.view(a.pod.uid)
	assert.Equal(t, reasons.LoadAverage, v.Reason, "the load is measured before the first pod comes")
	assert.InDelta(t, 9.5, v.Held.Measured, 0)
	assert.InDelta(t, 4, v.Held.Threshold, 0)
	proc.load("3.90")
	a.succeeds()
}
