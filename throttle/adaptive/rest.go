package adaptive

import (
	"math"
	"time"
)

// bearableRest is how long all starts that are left may take where they are let in at
// once: half of the 20 seconds that a probe with Kubernetes' defaults takes
// at least until it kills (failureThreshold 3, periodSeconds 10).
const bearableRest = 10 * time.Second

// learn takes what a sample says of the starts that are over.
func (c *Controller) learn(s Sample, full bool) {
	past := s.At.Sub(c.seen)
	watched := past <= s.Window
	if watched {
		c.demand.add(s, past, c.idle)
	} else {
		c.demand = newDemand(s)
	}
	c.loss.observe(s, &c.past, full && watched)
}

// rest is how long all starts that are left keep the node busy; ok tells whether they
// may be let in at once. Where starts were lost, they may not.
func (c *Controller) rest(s Sample) (took time.Duration, ok bool) {
	took, known := c.demand.of(s.Queued, s.Starting)
	return took, known && took < bearableRest && s.Waiting > 0 && c.loss.most == 0
}

// demand is how long the starts of a herd kept the CPUs and the disks busy. A disk is
// taken to be busy while anybody waits for it: that is too much where it could serve
// more.
type demand struct {
	cpu, disk float64 // seconds
	made      int     // how many starts made it in that time
	before    int     // and before it
}

// newDemand begins with the next sample.
func newDemand(s Sample) demand { return demand{before: s.Made} }

// add takes a sample, and the time since the one before, on a node with a lasting load. Of
// what that leaves, the starts kept busy what is not idle: where all of the CPU was busy
// before them, nobody can see what they add, and they are taken to keep all of it busy.
func (d *demand) add(s Sample, past time.Duration, lasting float64) {
	d.cpu += past.Seconds() * max(0, 1-(1-share(s.CPU, s.CPUKnown))/max(0.1, 1-lasting))
	d.disk += past.Seconds() * share(s.IOPressure, s.IOPressureKnown)
	d.made = s.Made - d.before
}

// share gives what percent says; 1, where that is not known.
func share(percent float64, known bool) float64 {
	if !known || !(percent >= 0) { // or NaN
		return 1
	}
	return min(1, percent/100)
}

// of gives how long so many starts, and so many that are under way and half done on
// average, keep busy what they are held up by. They may be other ones than those that
// made it, so there are taken to be fewer of these, by the standard error of such a
// number. known is false where none is left.
func (d *demand) of(starts, underWay int) (took time.Duration, known bool) {
	made := float64(d.made) - math.Sqrt(float64(d.made))
	if made <= 0 {
		return 0, false
	}
	left := float64(starts) + float64(underWay)/2
	return time.Duration(float64(time.Second) * left * max(d.cpu, d.disk) / made), true
}
