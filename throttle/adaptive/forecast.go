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
	// restUntil is until if all that wait start at once: no start may be stretched without limit then, also where no probe
	// kills it.
	restUntil float64
	known     bool    // what a start of its kind takes is known
	proven    bool    // and one of its kind has ended since the herd began
	anyway    float64 // seconds after which it ends if no other start joins; 0 if it is to join itself
	// What the forecast finds:
	end   float64 // seconds
	crowd float64 // cores that all starts which burn when it begins to burn could keep busy, with its own
}

// under is one start in a forecast.
type under struct {
	*demand
	disk, cpu float64 // left
	rate      float64 // cores that it keeps busy; 0 until it burns
}

// nothing is a remainder that is none: sums of floating point numbers are not exact.
const nothing = 1e-9

// foresee finds when each start ends if all share the cores, and the bytes a second that the disk serves, evenly, and
// none gets more than it can use. It moves from event to event. Between two events all rates are constant. It ends for any
// demands: if a rate is not a number, so is the step.
func foresee(all []demand, cores, disk float64) {
	starts := make([]under, len(all))
	// Indices of starts: idling by when they burn, burning by cores, the fewest first.
	idling := make([]int, 0, len(all))
	var reading, burning []int
	soon, wide := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		starts[i] = under{demand: &all[i], disk: all[i].disk, cpu: all[i].cpu}
		soon[i], wide[i] = all[i].idle, all[i].cores
		if all[i].disk > nothing {
			reading = append(reading, i)
		} else {
			idling = append(idling, i)
		}
	}
	slices.SortFunc(idling, func(a, b int) int { return cmp.Compare(soon[a], soon[b]) })
	for now, step := 0.0, 0.0; step < math.Inf(1); now += step {
		reading = slices.DeleteFunc(reading, func(i int) bool {
			if starts[i].disk > nothing {
				return false
			}
			idling = insert(idling, i, soon)
			return true
		})
		for len(idling) > 0 && starts[idling[0]].idle <= now {
			burning = insert(burning, idling[0], wide)
			idling = idling[1:]
		}
		burning = slices.DeleteFunc(burning, func(i int) bool {
			if starts[i].cpu > nothing {
				return false
			}
			starts[i].end = now
			return true
		})
		step = math.Inf(1)
		if len(idling) > 0 {
			step = starts[idling[0]].idle - now
		}
		readers, crowd := 0.0, 0.0
		for _, i := range reading {
			readers += starts[i].reads
		}
		for _, i := range burning {
			crowd += starts[i].cores
		}
		speed, free := min(1, disk/readers), cores
		for _, i := range reading {
			step = min(step, starts[i].disk/(starts[i].reads*speed))
		}
		for n, i := range burning {
			s := &starts[i]
			if s.rate == 0 {
				s.crowd = crowd
			}
			s.rate = min(s.cores, free/float64(len(burning)-n))
			free -= s.rate
			step = min(step, s.cpu/s.rate)
		}
		if math.IsInf(step, 1) {
			return
		}
		for _, i := range reading {
			starts[i].disk -= starts[i].reads * speed * step
		}
		for _, i := range burning {
			starts[i].cpu -= starts[i].rate * step
		}
	}
}

// insert adds a start to others that are in the order of by, as the last of those with the same.
func insert(to []int, start int, by []float64) []int {
	at, _ := slices.BinarySearchFunc(to, start, func(o, s int) int { return cmp.Or(cmp.Compare(by[o], by[s]), -1) })
	return slices.Insert(to, at, start)
}
