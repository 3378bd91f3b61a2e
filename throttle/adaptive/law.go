package adaptive

import "time"

// The constants of the law; the package documentation derives those that are not
// plain.
const (
	// CPU pressure counts in part from the first CPU use on, and in full from the
	// second: below, it comes from containers that their own CPU limit holds.
	pressureFrom, pressureFull = 0.70, 0.95
	// goalWithoutPressure is the CPU use that is steered for where pressure is not
	// known.
	goalWithoutPressure = 0.90
	// growth is by how much the starts that were measured may multiply before their
	// successors are measured.
	growth = 4
	// Above ioPressure, percent, the disk may be what starts wait for, and more than
	// ioPerCore starts for each core are not tried.
	ioPressure, ioPerCore = 50, 2.5
	// Above a load of overfull the measure hardly rises with the starts any more.
	overfull = 1.8
	// nearby is how near to the goal, by a part of it, a node is full.
	nearby = 0.10
	// blindPerCore is the limit where nothing is known.
	blindPerCore = 2
	// Below a load of openBelow, reachPerCore starts for each core are to be expected.
	// So are they while the pods of a herd are set up on a node that had such a load
	// before.
	openBelow, reachPerCore = 0.75, 8
	// In the first setUp windows of a herd the load may be that of setting its pods up.
	setUp = 3
	// lasting is after how long without starts a load is taken to stay.
	lasting = 10 * time.Second
)

// load gives the work that the CPUs of the node have, in parts of what they can
// do: 1 keeps all of them busy, 2 is a second task waiting for each of them. It
// tells no more from 2. The goal is in the same unit; 0: nothing is known.
func (s Settings) load(m Sample) (load, goal float64) {
	cpu, pressure := m.CPU/100, m.CPUPressure/100
	cpuKnown, pressureKnown := m.CPUKnown && cpu >= 0, m.CPUPressureKnown && pressure >= 0 // not NaN
	switch {
	case !cpuKnown && !pressureKnown:
		return 0, 0
	case !pressureKnown:
		return cpu, goalWithoutPressure
	case !cpuKnown:
		cpu = 1
	}
	counts := (cpu - pressureFrom) / (pressureFull - pressureFrom)
	return cpu + pressure*max(0, min(1, counts)), s.goal()
}

// goal is the load to steer for.
func (s Settings) goal() float64 { return 1 + s.TargetPressure/100 }

// full tells whether the starts that were measured are as many as the node bears.
func (s Settings) full(m Sample, load, goal float64) bool {
	return load >= (1-nearby)*goal || m.IOPressureKnown && m.IOPressure > ioPressure
}

// want is the number of starts that would meet the goal, if the next starts are as
// those that were measured: so many of them, on average over the window, made the
// load.
func (s Settings) want(m Sample, exposed, load, goal float64) float64 {
	want := exposed * goal / max(load, 0.01)
	if m.IOPressureKnown && m.IOPressure > ioPressure {
		want = min(want, ioPerCore*float64(s.Cores))
	}
	return min(want, growth*exposed+1)
}
