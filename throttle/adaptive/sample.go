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
	// Queued is how many pods wait at all, present or not.
	Queued int
	// Made is how many starts made it, since any time that stays the same.
	Made int
	// Lost is when the last admitted of the starts that broke off had been admitted;
	// zero: none did. Only those count that a probe may have killed, because they had
	// lasted for a while.
	Lost time.Time
}
