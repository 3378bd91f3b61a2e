package adaptive

import (
	"math"
	"time"
)

// others is what the node does beside starts: what its CPUs did, less what was measured of the starts, as a mean that
// follows in lasting. What is done for a pod before its container runs counts to it.
type others struct {
	// cores that it keeps busy. Starts are measured more seldom than the node, and all that they used in between counts
	// at once: a single sample may be far below zero, and only the mean tells something.
	cores float64
	all   float64       // cores that were busy at the last sample
	spent time.Duration // CPU time that starts had used at the time of the last sample
	at    time.Time     // of that; zero: there was none
}

// Spend takes in that starts have used so much more CPU time since they were measured last.
func (c *Controller) Spend(cpu time.Duration) { c.spent += max(0, cpu) }

func (o *others) observe(s Sample, spent time.Duration, cores int) {
	if past := s.At.Sub(o.at).Seconds(); past > 0 && s.CPUKnown && s.CPU >= 0 {
		o.all = min(1, s.CPU/100) * float64(cores)
		now := o.all - (spent-o.spent).Seconds()/past
		o.cores += (now - o.cores) * (1 - math.Exp(-past/lasting.Seconds()))
	}
	o.spent, o.at = spent, s.At
}

// elsewhere is how many cores other work keeps busy: never more than are. Where no start was measured, it is what did
// so while nothing started.
func (c *Controller) elsewhere() float64 {
	if c.spent == 0 {
		return c.idle * float64(c.settings.Cores)
	}
	return max(0, min(c.others.all, c.others.cores))
}
