package adaptive

import (
	"math"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

const (
	// patienceUsed is the part of the time which its probe leaves to a start beyond what it takes alone that a
	// forecast may use up.
	patienceUsed = 0.6
	// aloneShare is the part of its patience that a start is taken to need alone of which nothing is known; one
	// that is expected to need more than aloneMost of it is such a start: the expectation is wrong.
	aloneShare, aloneMost = 0.25, 0.9
	// longestRead bounds how long such a start is taken to read alone, seconds.
	longestRead = 10
	// leastCores is what a start can keep busy at least.
	leastCores = 0.05
	// overrun is how many times the CPU time that was expected a start uses before it is taken for half done.
	overrun = 1.25
	// readerFrom is the part of the time before it burns CPU that a start needs at least to read what it reads,
	// if it reads while it waits, and does not just wait.
	readerFrom = 0.125
)

// course gives what a start will do from now on.
func (c *Controller) course(at time.Time, s Start) course {
	patience := math.Inf(1)
	if s.Patience > 0 {
		patience = s.Patience.Seconds()
	}
	elapsed := 0.0
	if !s.Began.IsZero() {
		elapsed = at.Sub(s.Began).Seconds()
	}
	one, alone := c.unknownCourse(s, patience), aloneShare*patience
	if e := s.Expected; e != nil {
		if known, takes := c.knownCourse(*e, s, elapsed); takes < aloneMost*patience && (!c.lost() || e.Seen.After(c.began)) {
			one, alone = known, takes
		}
	}
	if elapsed > measuredAfter.Seconds() && s.Cores >= burnsFrom && one.idle <= -measuredAfter.Seconds() {
		one.cores = s.Cores
	}
	if one.until = math.Inf(1); s.Patience > 0 {
		one.until = alone + patienceUsed*(patience-alone) - elapsed
	}
	return one
}

// knownCourse is that of a start of which it is known what such a start takes, and how long that is alone.
func (c *Controller) knownCourse(e costs.Cost, s Start, elapsed float64) (one course, alone float64) {
	one = course{idle: e.Idle.Mean, cpu: e.CPU.Mean + e.CPU.Deviation, cores: max(leastCores, e.Peak.Mean), known: true}
	if one.proven = e.Count > 0 && e.Seen.After(c.began); !one.proven {
		one.cores = max(1, one.cores)
	}
	if one.idle > 0 && e.Disk.Mean > readsFrom && e.Disk.Mean >= readerFrom*one.idle*c.disk.stream {
		one.reads, one.disk = max(c.disk.stream, e.Disk.Mean/one.idle), e.Disk.Mean
		if s.Patience > 0 {
			one.reads = max(one.reads, one.disk/(aloneShare*s.Patience.Seconds()))
		}
		if c.disk.stream > 0 {
			one.idle = 0
		}
	}
	alone = one.cpu / one.cores
	if one.disk > 0 {
		alone += max(one.idle, one.disk/one.reads)
	} else {
		alone += one.idle
	}
	one.underWay(e, s, elapsed)
	return one, alone
}

// underWay takes off what a start has done already.
func (one *course) underWay(e costs.Cost, s Start, elapsed float64) {
	one.idle -= elapsed
	one.disk = max(0, one.disk-float64(s.Disk))
	burns, used := s.Cores >= burnsFrom, s.CPU.Seconds()
	if burns && s.Cores >= min(1, one.cores)/2 {
		one.idle, one.disk = min(0, one.idle), 0
	}
	switch {
	case s.Began.IsZero():
	case used >= e.CPU.Mean && !burns:
		one.cpu = 0
	case used > overrun*one.cpu:
		one.cpu = used
	default:
		one.cpu = max(0, one.cpu-used)
	}
}

// unknownCourse is that of a start of which nothing is known: whatever it does, it is half done.
func (c *Controller) unknownCourse(s Start, patience float64) course {
	one := course{idle: math.Inf(-1), cores: 1, cpu: s.CPU.Seconds()}
	if s.Reads > readsFrom {
		one.reads = max(c.disk.stream, s.Reads)
		alone := one.reads * min(longestRead, aloneShare*patience)
		one.disk = max(alone-float64(s.Disk), float64(s.Disk))
	}
	return one
}
