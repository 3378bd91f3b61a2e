package adaptive

import (
	"math"
	"time"
)

// The constants of the law. deploy/adaptive.md derives them.
const (
	// CPU pressure counts from a CPU use of pressureFrom on, and in full from pressureFull on: below, it comes from
	// containers that their own CPU limit throttles.
	pressureFrom, pressureFull = 0.70, 0.95
	// Above ioPressure, percent, starts may wait for the disk.
	ioPressure = 50
	// nearly is the fraction of a load, such as the goal, at which a measured load counts as having reached it.
	nearly = 0.90
	// In the first setUp windows of a herd, the load may come from setting its pods up.
	setUp = 3
	// lasting is how long a load has to last to count as the load of other work, and how long no start must wait for the
	// disks before they are taken to serve more.
	lasting = 10 * time.Second
)

// load returns the load of the CPUs: 1 keeps all of them busy, at 2 a second task waits for each of them. It does not
// rise beyond 2. goal is in the same unit. It is 0 if neither CPU use nor pressure is known.
func (s Settings) load(m Sample) (load, goal float64) {
	cpu, pressure := m.CPU/100, m.CPUPressure/100
	cpuKnown, pressureKnown := m.CPUKnown && cpu >= 0, m.CPUPressureKnown && pressure >= 0 // not NaN
	switch {
	case !cpuKnown && !pressureKnown:
		return 0, 0
	case !pressureKnown:
		return cpu, nearly
	case !cpuKnown:
		cpu = 1
	}
	if m.Ran >= burnsFrom*float64(s.Cores) { // other work may queue behind the starts, which then wait for less
		pressure = min(pressure, 2*m.Waited/m.Ran)
	}
	counts := (cpu - pressureFrom) / (pressureFull - pressureFrom)
	return cpu + pressure*max(0, min(1, counts)), s.goal()
}

// goal returns the load that is the goal.
func (s Settings) goal() float64 { return 1 + s.TargetPressure/100 }

// startsAtGoal returns how many starts meet the goal on an idle node if each keeps one core busy.
func (s Settings) startsAtGoal() int { return int(math.Round(s.goal() * float64(s.Cores))) }

// want returns the number of starts that would meet the goal if the next ones are like those that were measured. exposed
// is how many of these there were, the mean over the window. The part of the load that refusals take is left to them.
func (s Settings) want(m Sample, exposed, load, goal float64) float64 {
	waits := max(0, min(m.Refusals/100, load/2, goal/2)) // an estimate, which may be too high
	want := exposed * (goal - waits) / max(load-waits, 0.01)
	if m.waitsForDisk() {
		want = min(want, float64(s.startsAtGoal()))
	}
	return want
}
