package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestStatusDrawsSignals(t *testing.T) {
	t.Parallel()
	var s throttle.Signals
	measured := func(signal throttle.Signal, value, from float64) {
		s[signal] = throttle.Reading{Value: value, From: at(from), To: at(10)}
	}
	measured(throttle.SignalCPU, 97.04, 8)
	measured(throttle.SignalIOWait, 0, 8)
	measured(throttle.SignalLoad, 12.5, 5)
	measured(throttle.SignalCPUPressure, 83.333, 9.75)
	s[throttle.SignalIOPressure].Err = errors.New("/proc/pressure/io: file is absent\x1b[2J")
	s[throttle.SignalIOFull].Err = s[throttle.SignalIOPressure].Err
	status := herd()
	status.Signals = admin.NewSignals(s, throttle.Settings{
		Signals: throttle.SignalLimits{
			throttle.SignalCPU: {Max: 80}, throttle.SignalLoad: {Max: 3.5},
			throttle.SignalCPUPressure: {Max: 60}, throttle.SignalIOPressure: {Max: 12.5},
		},
	})
	_, stdout, _ := call(t, "status", "--run-dir", serve(t, &fixed{status: status}))
	assertGolden(t, "status-signals", stdout)
	assert.NotContains(t, stdout, "\x1b")
}
