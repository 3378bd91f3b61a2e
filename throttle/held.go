package throttle

import (
	"fmt"
	"time"
)

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

// String says what was measured against what, for people.
func (h Held) String() string {
	switch h.Reason {
	case Concurrency:
		return fmt.Sprintf("%g of %g starting", h.Measured, h.Threshold)
	case Rate:
		return fmt.Sprintf("next start in %s, one per %s", seconds(h.Measured), seconds(h.Threshold))
	case Queued:
		return fmt.Sprintf("%g ahead", h.Measured)
	case Absent:
		return "nothing holds it, nobody has come back for it yet"
	case Pulling:
		return fmt.Sprintf("%g of %g pulling images", h.Measured, h.Threshold)
	case LoadAverage:
		return fmt.Sprintf("load %.2f%s of %g", h.Measured-h.Owed, h.owed("%.2f"), h.Threshold)
	case CPULoad, IOLoad, Pressure:
		return fmt.Sprintf("%s %.0f%%%s of %g%%", signalNames[h.Signal][1], h.Measured-h.Owed, h.owed("%.0f%%"), h.Threshold)
	case PolicyStarting, PolicyRunning, PolicyPacer, PolicyClaim, Unadmittable:
		return h.policyString()
	case NodeShutdown:
		return "nothing starts any more"
	case Evicted, Preempted:
		return "kubelet ends the pod"
	case GateRoom:
		return fmt.Sprintf("%g go before it, room for %g near their turn", h.Measured, h.Threshold)
	default:
		return ""
	}
}

// owed says what is owed, if anything is.
func (h Held) owed(format string) string {
	if h.Owed <= 0 {
		return ""
	}
	return fmt.Sprintf(" and "+format+" for starts not measured yet", h.Owed)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}
