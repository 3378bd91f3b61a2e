package signals

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// node is a node of which only the load average can be measured, in a bubble of synctest. A pod starts there, so it is
// sampled every half second.
type node struct {
	*Monitor
	t       *testing.T
	proc    string
	limiter *throttle.Limiter
	log     *logtest.Hook

	mu     sync.Mutex
	events []string
}

// aNode returns a node with a load of 1.
func aNode(t *testing.T) *node {
	t.Helper()
	log, logged := logtest.NewNullLogger()
	n := &node{t: t, proc: t.TempDir(), limiter: throttle.New(time.Now(), throttle.Settings{}), log: logged}
	n.Monitor = New(n.proc, n.limiter, log, func(kind, reason, message string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, kind+" "+reason+": "+message)
	})
	n.load("1.00")
	n.limiter.Join(time.Now(), throttle.Request{UID: "starting"}).TryStart(time.Now())
	go func() { assert.NoError(t, n.Run(t.Context())) }()
	return n
}

func (n *node) path() string { return filepath.Join(n.proc, "loadavg") }

// load sets the load average.
func (n *node) load(load string) {
	require.NoError(n.t, os.WriteFile(n.path(), []byte(load+" 1.00 1.00 1/100 1\n"), 0o600))
}

// limit puts settings in force.
func (n *node) limit(settings throttle.Settings) {
	n.Prepare(settings, 2*time.Second)
	n.limiter.Configure(time.Now(), settings)
	n.Wake()
}

// told returns the events on the node, after a few samples.
func (n *node) told() []string {
	time.Sleep(10 * time.Second)
	synctest.Wait()
	return n.written()
}

// written returns the events on the node until now.
func (n *node) written() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.events...)
}

// on returns settings with limits of 4 on some signals.
func on(all ...throttle.Signal) (s throttle.Settings) {
	for _, signal := range all {
		s.Signals[signal].Max = 4
	}
	return s
}

// A limit whose signal cannot be measured opens, and reports that once in the log and an event. It holds again later.
func TestALimitWhoseSignalIsBlindSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aNode(t)
		n.limit(on(throttle.SignalLoad))
		n.load("9.50")
		assert.Empty(t, n.told())
		held := n.limiter.Join(time.Now(), throttle.Request{UID: "held"})
		assert.False(t, held.TryStart(time.Now()).Admitted)
		assert.Empty(t, n.Blind())

		require.NoError(t, os.Remove(n.path()))
		require.Len(t, n.told(), 1)
		blind := n.Blind()
		require.Len(t, blind, 1)
		assert.Equal(t, "load", blind[0].Signal)
		assert.Contains(t, blind[0].Message, n.path())
		assert.Contains(t, blind[0].Message, "absent")
		assert.True(t, held.TryStart(time.Now()).Admitted)

		n.load("2.50")
		events := n.told()
		assert.Empty(t, n.Blind())
		assert.Equal(t, []string{
			"Warning SignalBlind: The signal load cannot be measured, its limit is open: " + blind[0].Message,
			"Normal SignalMeasured: The signal load is measured again, its limit holds",
		}, events)
		lines := n.log.AllEntries()
		require.Len(t, lines, 2)
		for i, level := range []logrus.Level{logrus.WarnLevel, logrus.InfoLevel} {
			assert.Equal(t, level, lines[i].Level)
			assert.Equal(t, "load", lines[i].Data["signal"])
		}
	})
}

func TestALimitThatIsBlindFromTheBeginningIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aNode(t)
		n.Prepare(on(throttle.SignalIOPressure), 2*time.Second)
		events := n.written()
		require.Len(t, events, 1, "it is reported before the limit is in force")
		assert.Contains(t, events[0], filepath.Join(n.proc, "pressure", "io"))
		n.limit(on(throttle.SignalMemoryFull))
		events = n.told()
		require.Len(t, events, 2, "the signal of a new limit is reported, and that of a removed limit is not")
		assert.Contains(t, events[1], "pressure.memory.full")
		blind := n.Blind()
		require.Len(t, blind, 1, "no limit needs pressure.io.some any more")
		assert.Equal(t, "pressure.memory.full", blind[0].Signal)
		assert.LessOrEqual(t, len(blind[0].Message), mostMessage)
		n.limit(throttle.Settings{})
		assert.Equal(t, []v1alpha1.BlindSignal(nil), n.Blind(), "at once")
		assert.Len(t, n.told(), 2, "a signal without a limit is not reported")
	})
}

// What a blind signal means depends on which limit needs it: only the signal's own limit opens.
func TestTheMessageOfABlindSignalNamesItsEffect(t *testing.T) {
	t.Parallel()
	used := on(throttle.SignalCPUPressure)
	used.MinUtilization = -1
	for name, c := range map[string]struct {
		settings throttle.Settings
		says     []string
	}{
		"adaptive": {throttle.Settings{Adaptive: &adaptive.Settings{Cores: 2}}, []string{
			"cpu cannot be measured, the adaptive limit does without it",
			"pressure.cpu.some cannot be measured, the adaptive limit does without it",
			"pressure.io.some cannot be measured, the adaptive limit does without it",
		}},
		"CPU pressure where the CPU is used": {on(throttle.SignalCPUPressure), []string{
			"cpu cannot be measured, the limit on CPU pressure is open",
			"pressure.cpu.some cannot be measured, its limit is open",
		}},
		"CPU pressure": {used, []string{"pressure.cpu.some cannot be measured, its limit is open"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := aNode(t)
				n.limit(c.settings)
				events := slices.Sorted(slices.Values(n.told())) // two measurements may report them side by side
				require.Len(t, events, len(c.says))
				for i, text := range c.says {
					assert.True(t, strings.HasPrefix(events[i], "Warning SignalBlind: The signal "+text+": "), events[i])
				}
			})
		})
	}
}
