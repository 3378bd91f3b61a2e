package adaptive

import (
	"math"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

const (
	// patienceUsed is the part that a forecast may use of the time which its probe leaves a start beyond what it
	// takes alone.
	patienceUsed = 0.4
	// aloneShare is the part of its patience that an unknown start is taken to need alone.
	aloneShare = 0.25
)

// demand is what one start will do from now on: it idles and reads from the disk, then it burns CPU until it ends.
type demand struct {
	idle  float64 // seconds
	disk  float64 // bytes that it reads meanwhile
	reads float64 // bytes a second that it reads at most
	cpu   float64 // CPU-seconds
	cores float64 // cores that it can keep busy
	until float64 // seconds within which it is to end; +Inf if no probe kills it
	known bool    // what a start of its kind takes is known
}

// reading returns for how long it reads with a disk for itself, seconds.
func (d demand) reading() float64 { return d.disk / max(1, d.reads) }

// demand returns what a start will do from now on that began some seconds ago.
func (c *Controller) demand(s Start, elapsed float64) demand {
	patience := s.Patience.Seconds() // 0: no probe kills it
	one, alone := unknownDemand(s, elapsed), aloneShare*patience
	if s.Cost != nil {
		if known, takes := c.knownDemand(*s.Cost, s, elapsed); takes < patience || patience == 0 {
			one, alone = known, takes
		}
	}
	one.until = math.Inf(1)
	if elapsed < patience { // else a probe would have killed it by now
		one.until = alone + patienceUsed*(patience-alone) - elapsed
	}
	return one
}

// knownDemand returns the demand of a start whose kind is known, and how long the start takes alone, seconds.
func (c *Controller) knownDemand(e costs.Cost, s Start, elapsed float64) (one demand, alone float64) {
	one = demand{idle: e.Idle.Mean, cpu: e.CPU.Mean + e.CPU.Deviation, cores: max(burnsFrom, e.Peak.Mean), known: true}
	if e.Count == 0 || !e.Seen.After(c.began) { // none of this herd has confirmed it: it may keep more cores busy
		one.cores = max(1, one.cores)
	}
	measured := elapsed > measuredAfter.Seconds()
	if one.idle > nothing && e.Disk.Mean > readsFrom && !(measured && s.Reads < movesFrom) {
		one.reads, one.disk = max(c.disk.stream, e.Disk.Mean/one.idle), e.Disk.Mean
		// A probe that leaves less time than this says nothing of the disk.
		if alone := aloneShare * s.Patience.Seconds(); alone >= measuredAfter.Seconds() {
			one.reads, one.idle = max(one.reads, one.disk/alone), min(one.idle, alone)
		}
	}
	alone = max(one.idle, one.reading()) + one.cpu/one.cores
	one.underWay(s, elapsed)
	return one, alone
}

// underWay subtracts what a start has done already. Its clock stands still while it waits for a CPU: a start that idles has
// to begin its process first, which takes seconds on a node that is full. One that has read more than was expected of it,
// and reads on, is taken to have as much left as it exceeds that, and one that has burned more to have three times as much.
func (d *demand) underWay(s Start, elapsed float64) {
	d.idle = max(0, d.idle-max(0, elapsed-s.Delayed.Seconds()))
	if d.disk > 0 {
		d.disk = math.Abs(d.disk - float64(s.Disk))
	}
	if s.Cores >= min(1, d.cores)/2 && s.Cores-s.Waited >= burnsFrom { // it burns CPU
		d.idle, d.disk = 0, 0
	}
	used := s.CPU.Seconds()
	left := d.cpu - used
	d.cpu = max(left, min(used, -3*left))
}

// unknownDemand returns the demand of an unknown start: it burns now, and is taken to be half done, on one core: one that
// keeps many cores busy for ever must not stretch the timetable. One that was measured and idles is taken to burn no more
// CPU: mostIdlers limits how many may idle.
func unknownDemand(s Start, elapsed float64) demand {
	one := demand{cores: 1, cpu: min(s.CPU.Seconds(), elapsed)}
	if elapsed > measuredAfter.Seconds() && s.Cores < burnsFrom {
		one.cpu = 0
	}
	return one
}
