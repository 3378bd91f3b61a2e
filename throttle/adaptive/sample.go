package adaptive

import "time"

// Sample is what was measured over the window that ends at At, and what the
// limiter knew then.
type Sample struct {
	At time.Time
	// CPU is how busy the CPUs of the node were, percent of all.
	CPU float64
	// CPUPressure and IOPressure are the kernel's pressure stall "some", percent.
	CPUPressure, IOPressure float64
	// CPUKnown, CPUPressureKnown and IOPressureKnown are false where the sensor is
	// blind: then its value means nothing.
	CPUKnown, CPUPressureKnown, IOPressureKnown bool
	// Window is how much time before At the values cover.
	Window time.Duration
	// Starting is how many slots are taken.
	Starting int
	// Waiting is how many pods are present and could start now if the limit were
	// greater.
	Waiting int
}
