package plugin

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	observe.Recorder
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
	assert.InDelta(t, 7.25, counted(t, n, "pod_pacemaker_signal_value"), 0)
	assert.InDelta(t, len(shown)-1, counted(t, n, "pod_pacemaker_signal_blind"), 0)
	assert.Empty(t, told.all(), "a signal without a limit is not reported")
	problems, err := testutil.GatherAndLint(n.d.metrics())
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestASignalHoldsStartsUntilItIsLowOrBlind(t *testing.T) {
	t.Parallel()
	proc, told := newProcTree(t, "9.50"), &toldNode{}
	n := newNode(t, loadBelowFour, with(proc.on), tuned(func(r *tuning) { r.events = told }))
	a := n.pod("waits").runs().waitsAtGate("app")
	v := n.view(a.pod.uid)
	assert.Equal(t, reasons.LoadAverage, v.Reason, "the load is measured before the first pod comes")
	assert.InDelta(t, 9.5, v.Held.Measured, 0)
	assert.InDelta(t, 4, v.Held.Threshold, 0)
	proc.load("3.90")
	a.succeeds()

	proc.load("9.50")
	n.eventually("the load is measured again", func() bool { return n.d.starts.Snapshot(time.Now()).Held.Reason == reasons.LoadAverage })
	next := n.pod("next").runs().waitsAtGate("app")
	proc.remove()
	next.succeeds()
	n.eventually("the event is written", func() bool { return len(told.all()) == 1 })
	s := n.d.Status().Signals[throttle.SignalLoad]
	assert.Nil(t, s.Value)
	assert.InDelta(t, 4, s.Threshold, 0)
	assert.Equal(t, "Warning SignalBlind: The signal load cannot be measured, its limit is open: "+s.Blind, told.all()[0])
}
