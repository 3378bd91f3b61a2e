package throttle

import (
	"math"
	"time"
)

// A Signal is one thing that a sensor measures of the node.
type Signal int

// The signals. Their order is stable.
const (
	// SignalCPU is the share of CPU time that was busy, in percent.
	SignalCPU Signal = iota
	// SignalIOWait is the share of CPU time that was idle with I/O under way, in percent.
	SignalIOWait
	// SignalLoad is the load average, in processes.
	SignalLoad
	// SignalCPUPressure and the following are the share of time, in percent, in which some, or
	// all (full), processes with work to do stood still for want of the resource.
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

// String gives the name of the signal, such as "cpu" or "pressure.io.full".
func (s Signal) String() string {
	if s < 0 || s >= numSignals {
		return "unknown"
	}
	return signalNames[s]
}

// Reading is what one signal was over a time. The zero value was never measured.
type Reading struct {
	// Value is in percent of the node, 0 to 100; of SignalLoad in processes.
	Value float64
	// From and To are the ends of the time over which it was measured. To zero: it never was.
	From, To time.Time
	// Err is why the sensor is blind; Value means nothing then. nil: it is not.
	Err error
}

// Signals are the readings of all signals, by Signal.
type Signals [numSignals]Reading

// valueAt gives the value of a signal; false: nobody knows it.
func (s *Signals) valueAt(now time.Time, of Signal) (float64, bool) {
	r := &s[of]
	if r.To.IsZero() || r.Err != nil || now.Sub(r.To) > readingKept || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return 0, false
	}
	return r.Value, true
}
