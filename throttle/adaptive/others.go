package adaptive

import (
	"math"
	"time"
)

// others is the other work of the node: what its CPUs did less what the starts were measured to use, as a mean over
// lasting. Work for a pod before its container runs counts as other work.
type others struct {
	// cores is how many cores other work keeps busy. Starts are measured less often than the node, and all that they
	// used in between counts at once. So a single sample may be far below zero, and only the mean counts.
	cores float64
	spent time.Duration // CPU time that starts had used at the last sample
	at    time.Time     // time of the last sample; zero if there was none
}

// Spend adds CPU time that starts were measured to use. Negative time counts as none.
func (c *Controller) Spend(cpu time.Duration) { c.spent += max(0, cpu) }

func (o *others) observe(s Sample, spent time.Duration, cores int) {
	if past := s.At.Sub(o.at).Seconds(); past > 0 && s.CPUKnown && s.CPU >= 0 {
		now := min(1, s.CPU/100)*float64(cores) - (spent-o.spent).Seconds()/past
		o.cores += (now - o.cores) * (1 - math.Exp(-past/lasting.Seconds()))
	}
	o.spent, o.at = spent, s.At
}

// elsewhere returns how many cores other work keeps busy. Where no start was measured, it is what was busy while nothing
// started.
func (c *Controller) elsewhere() float64 {
	if c.spent == 0 {
		return c.idle * float64(c.settings.Cores)
	}
	return max(0, c.others.cores)
}
