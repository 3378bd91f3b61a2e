package admin

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Other programs read these names and units. A signal without a value must not read as zero.
func TestSignalsAsJSON(t *testing.T) {
	t.Parallel()
	var s throttle.Signals
	s[throttle.SignalCPU] = throttle.Reading{Value: 41.5, From: at(0), To: at(2)}
	s[throttle.SignalIOWait] = throttle.Reading{Value: 0, From: at(0), To: at(2)}
	s[throttle.SignalIOFull] = throttle.Reading{Err: errors.New("no such file")}
	settings := throttle.Settings{
		Signals: throttle.SignalLimits{
			throttle.SignalCPU: {Max: 80}, throttle.SignalMemoryFull: {Max: 5}, throttle.SignalIOFull: {Max: 10},
		},
	}
	text, err := json.Marshal(NewSignals(s, settings))
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"name": "cpu", "value": 41.5, "threshold": 80, "spanSeconds": 2},
		{"name": "iowait", "value": 0, "spanSeconds": 2},
		{"name": "load"},
		{"name": "pressure.cpu.some"},
		{"name": "pressure.memory.some"},
		{"name": "pressure.memory.full", "threshold": 5},
		{"name": "pressure.io.some"},
		{"name": "pressure.io.full", "threshold": 10, "blind": "no such file"}
	]`, string(text))
}
