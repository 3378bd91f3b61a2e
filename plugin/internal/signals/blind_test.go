package signals

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// A limit whose signal cannot be measured opens, and reports that once in the log and an event. It holds again later.
func TestALimitWhoseSignalIsBlindSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aNode(t)
		n.limit(on(throttle.SignalLoad))
		n.load("9.50")
		assert.Empty(t, n.told())
		assert.False(t, n.starts("held"))
		assert.Empty(t, n.Blind())

		require.NoError(t, os.Remove(n.path()))
		require.Len(t, n.told(), 1)
		blind := n.Blind()
		require.Len(t, blind, 1)
		assert.Equal(t, "load", blind[0].Signal)
		assert.Contains(t, blind[0].Message, n.path())
		assert.Contains(t, blind[0].Message, "absent")
		assert.True(t, n.starts("held"))

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
