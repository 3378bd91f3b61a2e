package adaptive

import (
	"math"
	"time"

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
	idle  float64 // seconds; below 0: it burns already
	disk  float64 // bytes that it reads meanwhile
	reads float64 // bytes that it reads in a second at most
	cpu   float64 // CPU-seconds
	cores float64 // that it can keep busy
	until float64 // seconds within which it is to end; +Inf: any time
	known bool    // what a start of its kind takes is known
}

// reading returns how long it reads with a disk for itself, seconds.
func (d demand) reading() float64 {
	if d.disk == 0 {
		return 0
	}
	return d.disk / d.reads
}

// demand returns what a start will do from now on.
func (c *Controller) demand(at time.Time, s Start) demand {
	patience := math.Inf(1)
	if s.Patience > 0 {
		patience = s.Patience.Seconds()
	}
	elapsed := 0.0
	if !s.Began.IsZero() {
		elapsed = at.Sub(s.Began).Seconds()
	}
	one, alone := unknownDemand(s, elapsed), aloneShare*patience
	if e := s.Cost; e != nil {
		if known, takes := c.knownDemand(*e, s, elapsed); takes < patience {
			one, alone = known, takes
		}
	}
	one.until = math.Inf(1)
	if elapsed < patience && s.Patience > 0 { // a probe would have killed it by now
		one.until = alone + patienceUsed*(patience-alone) - elapsed
	}
	return one
}

// knownDemand returns the demand of a start whose kind is known, and how long the start takes alone, seconds.
func (c *Controller) knownDemand(e costs.Cost, s Start, elapsed float64) (one demand, alone float64) {
	one = demand{idle: e.Idle.Mean, cpu: e.CPU.Mean + e.CPU.Deviation, cores: max(burnsFrom, e.Peak.Mean), known: true}
	if !(e.Count > 0 && e.Seen.After(c.began)) { // none of this herd has confirmed it: it may keep more cores busy
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
	if s.Began.IsZero() {
		return
	}
	d.idle -= max(0, elapsed-s.Delayed.Seconds())
	if d.disk > 0 {
		d.disk = math.Abs(d.disk - float64(s.Disk))
	}
	burns, used := s.Cores >= burnsFrom, s.CPU.Seconds()
	if burns && s.Cores >= min(1, d.cores)/2 && s.Cores-s.Waited >= burnsFrom {
		d.idle, d.disk = min(0, d.idle), 0
	}
	if used > d.cpu {
		d.cpu = min(used, 3*(used-d.cpu))
	} else {
		d.cpu -= used
	}
}

// unknownDemand returns the demand of an unknown start: it burns now, and is taken to be half done, on one core: one that
// keeps many cores busy for ever must not stretch the timetable. One that was measured and idles is taken to burn no more
// CPU: mostIdlers limits how many may idle.
func unknownDemand(s Start, elapsed float64) demand {
	one := demand{idle: math.Inf(-1), cores: 1, cpu: min(s.CPU.Seconds(), elapsed)}
	if elapsed > measuredAfter.Seconds() && s.Cores < burnsFrom {
		one.cpu = 0
	}
	return one
}
