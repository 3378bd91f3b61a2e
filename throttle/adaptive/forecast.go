package adaptive

import (
	"cmp"
	"math"
	"slices"
)

// demand is what one start will do from now on: it idles and reads from the disk, then it burns CPU until it ends.
type demand struct {
	idle  float64 // seconds
	disk  float64 // bytes that it reads meanwhile
	reads float64 // bytes that it reads in a second at most
	cpu   float64 // CPU-seconds
	cores float64 // that it can keep busy
	until float64 // seconds within which it is to end; +Inf: any time
	// restUntil is until if all that wait start at once: no start may be stretched without bound then, also where no
	// probe kills it.
	restUntil float64
	known     bool    // what a start of its kind takes is known
	proven    bool    // and one of its kind has ended since the herd began
	anyway    float64 // seconds after which it ends if no other start joins; 0: it is to join itself
	// What the forecast finds:
	end   float64 // seconds
	crowd float64 // cores that all starts which burn when it begins to burn could keep busy, with its own
}

// under is one start in a forecast.
type under struct {
	*demand
	disk, cpu float64 // left
	rate      float64 // cores that it keeps busy
	stage     stage
}

type stage int

const (
	idling stage = iota
	burning
	over
)

// nothing is a remainder that is none: sums of floating point numbers are not exact.
const nothing = 1e-9

// foresee finds when each start ends if all share the cores, and the bytes a second that the disk serves, evenly, and
// none gets more than it can use. It moves from event to event. Between two events all rates are constant. It ends for any
// demands: if a rate is not a number, so is the step.
func foresee(all []demand, cores, disk float64) {
	starts := make([]under, len(all))
	for i := range all {
		starts[i] = under{demand: &all[i], disk: all[i].disk, cpu: all[i].cpu}
	}
	slices.SortStableFunc(starts, func(a, b under) int { return cmp.Compare(a.cores, b.cores) })
	for now, step := 0.0, 0.0; step < math.Inf(1); now += step {
		readers, crowd, hungry := 0.0, 0.0, 0
		for i := range starts {
			s := &starts[i]
			if s.stage == idling && s.idle <= now && s.disk <= nothing {
				s.stage = burning
			}
			if s.stage == burning && s.cpu <= nothing {
				s.stage, s.end, s.crowd = over, now, max(s.crowd, 0)
			}
			switch {
			case s.stage == burning:
				crowd, hungry = crowd+s.cores, hungry+1
			case s.stage == idling && s.disk > nothing:
				readers += s.reads
			}
		}
		speed, free := min(1, disk/readers), cores
		step = math.Inf(1)
		for i := range starts {
			s := &starts[i]
			switch {
			case s.stage == burning:
				if s.rate == 0 {
					s.crowd = crowd
				}
				s.rate = min(s.cores, free/float64(hungry))
				hungry, free = hungry-1, free-s.rate
				step = min(step, s.cpu/s.rate)
			case s.stage == idling && s.disk > nothing:
				step = min(step, s.disk/(s.reads*speed))
			case s.stage == idling:
				step = min(step, s.idle-now)
			}
		}
		for i := range starts {
			switch s := &starts[i]; {
			case math.IsInf(step, 1):
			case s.stage == burning:
				s.cpu -= s.rate * step
			case s.stage == idling && s.disk > nothing:
				s.disk -= s.reads * speed * step
			}
		}
	}
}
