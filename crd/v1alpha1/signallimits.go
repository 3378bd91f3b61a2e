package v1alpha1

import "time"

// SignalLimit is up to where a signal of the node lets pods start.
type SignalLimit struct {
	// Max is in percent, of a load average in processes of the whole node; 0: the
	// signal holds nothing.
	Max float64
	// Increment is what each start adds to the signal until it was measured anew.
	Increment float64
}

// CPUSignal is the limit of CPU use.
func (t ThrottleConfig) CPUSignal() SignalLimit {
	if t.CPU == nil {
		return SignalLimit{}
	}
	return signalLimit(t.CPU.MaxLoad, t.CPU.IncrementBy, 1)
}

// IOSignal is the limit of the time that CPUs are idle for want of I/O.
func (t ThrottleConfig) IOSignal() SignalLimit {
	if t.IO == nil {
		return SignalLimit{}
	}
	return signalLimit(t.IO.MaxLoad, t.IO.IncrementBy, 1)
}

// LoadSignal is the limit of the load average on a node with this many CPU cores.
func (t ThrottleConfig) LoadSignal(cores int) SignalLimit {
	if t.LoadAvg == nil {
		return SignalLimit{}
	}
	factor := 1
	if t.LoadAvg.PerCore {
		factor = max(1, cores)
	}
	return signalLimit(t.LoadAvg.MaxLoad, t.LoadAvg.IncrementBy, factor)
}

func signalLimit(maxLoad, incrementBy *Decimal, factor int) SignalLimit {
	l := SignalLimit{Max: maxLoad.float(0) * float64(factor)}
	if l.Max > 0 {
		l.Increment = incrementBy.float(0) * float64(factor)
	}
	return l
}

// PressureLimits are up to where pressure lets pods start, each in percent; 0:
// that kind of pressure holds nothing.
type PressureLimits struct {
	CPUSome                float64
	MemorySome, MemoryFull float64
	IOSome, IOFull         float64
	// MinUtilization is the CPU use in percent above which CPU pressure counts; 0:
	// it always does.
	MinUtilization float64
}

// PressureLimits are the limits of pressure. Without any, all are 0 but
// MinUtilization, which has its default.
func (t ThrottleConfig) PressureLimits() PressureLimits {
	l := PressureLimits{MinUtilization: DefaultMinUtilization}
	p := t.Pressure
	if p == nil {
		return l
	}
	if p.CPU != nil {
		l.CPUSome, l.MinUtilization = p.CPU.Some.float(0), p.CPU.MinUtilization.float(DefaultMinUtilization)
	}
	if p.Memory != nil {
		l.MemorySome, l.MemoryFull = p.Memory.Some.float(0), p.Memory.Full.float(0)
	}
	if p.IO != nil {
		l.IOSome, l.IOFull = p.IO.Some.float(0), p.IO.Full.float(0)
	}
	return l
}

// PressureWindow is the time over which pressure is measured.
func (t ThrottleConfig) PressureWindow() time.Duration {
	if t.Pressure == nil {
		return DefaultPressureWindow
	}
	return t.Pressure.Window.orDefault(DefaultPressureWindow)
}
