package throttle

import "time"

// Held says which limit holds a start back, and by what measure. The zero value
// holds nothing.
type Held struct {
	// Reason is the limit.
	Reason Reason
	// Signal is which signal, of CPULoad, IOLoad, LoadAverage and Pressure.
	Signal Signal
	// Measured and Threshold are in the unit of the limit: starts at a time for
	// Concurrency, seconds until the next start and seconds per start for Rate,
	// pods for Queued, GateRoom and Pulling, else that of the signal.
	Measured, Threshold float64
	// Owed is the part of Measured that starts owe which the signal was not measured
	// after; of CPULoad, IOLoad and LoadAverage.
	Owed float64
	// Policy is the group whose limit holds it; of PolicyStarting, PolicyRunning,
	// PolicyPacer, PolicyClaim and Unadmittable. Measured is in use then, of Threshold.
	Policy GroupKey
	// Resource is what that limit bounds; empty: pods. Measured, Threshold and Asks are
	// in its unit.
	Resource string
	// Asks is how much more the pod would use; of a resource only.
	Asks float64
	// Until is when the limit will allow one more start by itself. Zero: that is
	// not known.
	Until time.Time
}
