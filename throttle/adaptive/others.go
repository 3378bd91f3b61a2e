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
	cores   float64
	spent   time.Duration // CPU time that starts were measured to use
	counted time.Duration // the part of spent that samples have counted
}

// Spend adds CPU time that starts were measured to use. Negative time counts as none.
func (c *Controller) Spend(cpu time.Duration) { c.others.spent += max(0, cpu) }

// observe takes a sample that comes the time since after the last one.
func (o *others) observe(s Sample, since time.Duration, cores int) {
	if s.CPUKnown && s.CPU >= 0 {
		now := min(1, s.CPU/100)*float64(cores) - (o.spent-o.counted).Seconds()/since.Seconds()
		o.cores += (now - o.cores) * (1 - math.Exp(-since.Seconds()/lasting.Seconds()))
	}
	o.counted = o.spent
}

// elsewhere returns how many cores other work keeps busy. Where no start was measured, it is what was busy while nothing
// started.
func (c *Controller) elsewhere() float64 {
	if c.others.spent == 0 {
		return c.before * float64(c.settings.Cores)
	}
	return max(0, c.others.cores)
}
