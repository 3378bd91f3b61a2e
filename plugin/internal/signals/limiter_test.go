package signals

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A container that its own CPU limit throttles raises the CPU pressure of the whole node. If the limiter trusted the
// pressure alone, it would stop all starts on an idle node.

// start asks a limiter with these signals for a start.
func start(s throttle.Signals) throttle.Decision {
	now := s[throttle.SignalCPU].To
	l := throttle.New(now, throttle.Settings{Signals: throttle.SignalLimits{throttle.SignalCPUPressure: {Max: 50}}})
	l.Observe(now, s)
	return l.Join(now, throttle.Request{UID: "uid", Name: "default/pod"}).TryStart(now)
}

func TestAThrottledContainerHoldsNoStart(t *testing.T) {
	t.Parallel()
	samples := recorded(t, "throttled")
	require.Len(t, samples, 2)
	for _, s := range samples {
		assert.Greater(t, s[throttle.SignalCPUPressure].Value, 50.0, "the pressure alone would hold starts")
		assert.Less(t, s[throttle.SignalCPU].Value, throttle.Settings{}.WithDefaults().MinUtilization)
		assert.True(t, start(s).Granted)
	}
}

func TestContainersThatOverloadTheCPUsHoldStarts(t *testing.T) {
	t.Parallel()
	for _, s := range recorded(t, "contended") {
		assert.Greater(t, s[throttle.SignalCPUPressure].Value, 95.0)
		assert.Greater(t, s[throttle.SignalCPU].Value, 95.0)
		d := start(s)
		require.False(t, d.Granted)
		assert.Equal(t, reasons.Pressure, d.Reason)
		assert.Equal(t, throttle.SignalCPUPressure, d.Held.Signal)
		assert.InDelta(t, s[throttle.SignalCPUPressure].Value, d.Held.Measured, 0.01)
		assert.InDelta(t, 50, d.Held.Threshold, 0)
	}
}

// recorded returns the signals of a node that was recorded every two seconds.
func recorded(t *testing.T, name string) (all []throttle.Signals) {
	t.Helper()
	h := history{window: defaultWindow}
	for i := 0; ; i += 2 {
		root := filepath.Join("testdata", name, strconv.Itoa(i)+"s")
		uptime, err := os.ReadFile(filepath.Join(root, "uptime"))
		if os.IsNotExist(err) {
			return all[1:] // the first sample is only compared with
		}
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(uptime), " ")
		seconds, err := strconv.ParseFloat(first, 64)
		require.NoError(t, err)
		m := newReader(root, "/nowhere").read(cores.Of(2))
		m.at = time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second)))
		for s := throttle.SignalCPUPressure; s <= throttle.SignalIOFull; s++ {
			m.counters[s].total = seconds
		}
		all = append(all, h.add(m))
	}
}
