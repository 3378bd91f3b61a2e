package nodesim

import (
	"math/rand/v2"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// totals are counters as the kernel keeps them: seconds since the herd was created.
type totals struct{ at, cpu, cpuSome, ioSome float64 }

func (t *totals) add(l load, past float64) {
	t.at += past
	t.cpu += l.cpu * past
	t.cpuSome += l.cpuSome * past
	t.ioSome += l.ioSome * past
}

// The period with which the sensor reads the counters, and the readings in its window.
const (
	readEvery = 0.25
	readings  = 8
)

// Measured is what the sensor reports: percent over the window.
type Measured struct {
	At                           float64 // seconds since the herd was created
	Window                       float64 // seconds
	CPU, CPUPressure, IOPressure float64
	// Starting counts the pods between the start of their process and ready, Slots those that hold a slot, Waiting
	// those that wait for the limiter.
	Starting, Slots, Waiting int
}

// Signals returns the measurement, made now, in the form that a limiter takes.
func (m Measured) Signals(now time.Time) (s throttle.Signals) {
	from := now.Add(-seconds(m.Window))
	s[throttle.SignalCPU] = throttle.Reading{Value: m.CPU, From: from, To: now}
	s[throttle.SignalCPUPressure] = throttle.Reading{Value: m.CPUPressure, From: from, To: now}
	s[throttle.SignalIOPressure] = throttle.Reading{Value: m.IOPressure, From: from, To: now}
	return s
}

// sensor turns counters into the measurement of a window.
type sensor struct {
	seen   []totals
	noise  totals // the sum of the noise that was added to the counters
	before totals
	random *rand.Rand
}

// The spread of one reading's noise: relative for the pressure, in percent of the node for the CPU use. The noise of
// the recordings is of this size.
const pressureNoise, cpuNoise = 0.25, 1.5

func (s *sensor) read(now totals) Measured {
	d := now.minus(s.before)
	s.before = now
	s.noise.cpuSome += d.cpuSome * pressureNoise * (2*s.random.Float64() - 1)
	s.noise.ioSome += d.ioSome * pressureNoise * (2*s.random.Float64() - 1)
	s.noise.cpu += d.at * cpuNoise / 100 * (2*s.random.Float64() - 1)
	s.seen = append(s.seen, totals{at: now.at, cpu: now.cpu + s.noise.cpu, cpuSome: now.cpuSome + s.noise.cpuSome, ioSome: now.ioSome + s.noise.ioSome})
	s.seen = s.seen[max(0, len(s.seen)-readings-1):]
	w := s.seen[len(s.seen)-1].minus(s.seen[0])
	percent := func(x float64) float64 { return max(0, min(100, 100*x/w.at)) }
	return Measured{At: now.at, Window: w.at, CPU: percent(w.cpu), CPUPressure: percent(w.cpuSome), IOPressure: percent(w.ioSome)}
}

func (t totals) minus(o totals) totals {
	return totals{at: t.at - o.at, cpu: t.cpu - o.cpu, cpuSome: t.cpuSome - o.cpuSome, ioSome: t.ioSome - o.ioSome}
}
