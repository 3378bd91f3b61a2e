package throttle

import (
	"math"
	"time"
)

// Signal is a measure of the load on the node.
type Signal int

// The signals. Their order is stable.
const (
	// SignalCPU is the share of CPU time that was busy, in percent.
	SignalCPU Signal = iota
	// SignalIOWait is the share of CPU time that was idle with I/O under way, in percent.
	SignalIOWait
	// SignalLoad is the load average, in processes.
	SignalLoad
	// SignalCPUPressure and the following are the share of time, in percent, in which some
	// processes with work to do stalled for lack of the resource, or all did (full).
	SignalCPUPressure
	SignalMemoryPressure
	SignalMemoryFull
	SignalIOPressure
	SignalIOFull
	numSignals
)

var signalNames = [numSignals]string{
	SignalCPU: "cpu", SignalIOWait: "iowait", SignalLoad: "load", SignalCPUPressure: "pressure.cpu.some",
	SignalMemoryPressure: "pressure.memory.some", SignalMemoryFull: "pressure.memory.full",
	SignalIOPressure: "pressure.io.some", SignalIOFull: "pressure.io.full",
}

// String returns the name of the signal, as "cpu" or "pressure.io.full".
func (s Signal) String() string {
	if s < 0 || s >= numSignals {
		return "unknown"
	}
	return signalNames[s]
}

// Reading is the value of a signal over a time. The zero value means that it was never measured.
type Reading struct {
	// Value is in percent of the node, 0 to 100; of SignalLoad in processes.
	Value float64
	// Refusals is which part of Value refusals of waiting pods are estimated to take, in percent of the node. Only that of
	// SignalCPU counts.
	Refusals float64
	// From and To are the ends of the time over which it was measured. If To is zero, it never was.
	From, To time.Time
	// Err is why the signal could not be measured, or nil. If it is set, Value means nothing.
	Err error
}

// Signals are the readings of all signals, by Signal.
type Signals [numSignals]Reading

// valueAt returns the value of a signal, or false if it is not known.
func (s *Signals) valueAt(now time.Time, of Signal) (float64, bool) {
	r := &s[of]
	if r.To.IsZero() || r.Err != nil || now.Sub(r.To) > readingValidFor || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return 0, false
	}
	return r.Value, true
}
