package adaptive

import (
	"math"
	"time"
)

// others is what the node does beside starts: what its CPUs did, less what was measured of the starts, as a mean that
// follows in lasting, and never more than they do now. What is done for a pod before its container runs counts to it.
type others struct {
	cores float64       // that it keeps busy
	spent time.Duration // CPU time that starts had used at the time of the last sample
	at    time.Time     // of that; zero: there was none
}

// Spend takes in that starts have used so much more CPU time since they were measured last.
func (c *Controller) Spend(cpu time.Duration) { c.spent += max(0, cpu) }

func (o *others) observe(s Sample, spent time.Duration, cores int) {
	if past := s.At.Sub(o.at).Seconds(); past > 0 && s.CPUKnown {
		all := share(s.CPU, true) * float64(cores)
		now := max(0, all-(spent-o.spent).Seconds()/past)
		o.cores = min(all, o.cores+(now-o.cores)*(1-math.Exp(-past/lasting.Seconds())))
	}
	o.spent, o.at = spent, s.At
}

// elsewhere is how many cores other work keeps busy. Where no start was measured, it is what did so while nothing
// started.
func (c *Controller) elsewhere() float64 {
	if c.spent == 0 {
		return c.idle * float64(c.settings.Cores)
	}
	return c.others.cores
}
