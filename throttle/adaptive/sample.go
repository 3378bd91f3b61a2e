package adaptive

import "time"

// Sample is what was measured over the window that ends at At, and the state of the limiter then.
type Sample struct {
	At time.Time
	// CPU is the CPU use of the node, percent of all its CPUs.
	CPU float64
	// Refusals is the CPU use of refusals of waiting pods, percent of all CPUs. It is a part of CPU, and no load of starts.
	Refusals float64
	// CPUPressure and IOPressure are the kernel's pressure stall "some", percent.
	CPUPressure, IOPressure float64
	// CPUKnown, CPUPressureKnown and IOPressureKnown are false where the sensor failed. Then its value means nothing.
	CPUKnown, CPUPressureKnown, IOPressureKnown bool
	// Window is the time before At that the values cover.
	Window time.Duration
	// Starting is how many slots are taken.
	Starting int
	// Ran is how many CPUs these starts kept busy lately, Waited how many they waited for; both are zero if not measured.
	Ran, Waited float64
	// Waiting reports whether a pod could start now if the limit were greater.
	Waiting bool
	// Queued reports whether a pod waits for the limits of the node. A pod that a group of pods holds does not, nor does
	// one whose images kubelet pulls: both may wait for hours.
	Queued bool
	// Made is how many starts have succeeded so far. Only how it grows from sample to sample counts.
	Made int
	// Lost is the latest admission time of a start that ended without success, after it had lasted long enough for a
	// probe to kill it; zero if there was none.
	Lost time.Time
}

// waitsForDisk reports whether starts may wait for the disk.
func (m Sample) waitsForDisk() bool { return m.IOPressureKnown && m.IOPressure > ioPressure }
