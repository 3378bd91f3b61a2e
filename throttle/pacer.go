package throttle

import "math"

// PacerKind is how a [Pacer] grows.
type PacerKind string

// The kinds of pacers. Empty: none.
const (
	// Exponential: MinInitial start at first, then Multiplier times as many as are ready.
	Exponential PacerKind = "Exponential"
	// Linear: as many as are missing to the next multiple of Step.
	Linear PacerKind = "Linear"
)

// Pacer bounds how many pods of a group start, by how many of it are ready, with the
// meaning that straggler's pacers have (github.com/technicianted/straggler, pkg/pacer).
// A pod starts here from its admission until it is ready or has finished; one
// that is no longer ready starts again. The zero value bounds nothing.
type Pacer struct {
	Kind PacerKind
	// MinInitial is how many start while none is ready, and Multiplier how many beside each
	// that is; the product is rounded up. Both of Exponential, and at least one starts.
	MinInitial int
	Multiplier float64
	// Step is the size of a step of Linear. Below 1 it counts as 1.
	Step int
	// MaxStagger is how many have to be ready for the pacer to bound nothing any more.
	MaxStagger int
}

// allows gives how many may start at a time beside so many that are ready; false:
// any number.
func (p Pacer) allows(ready int) (starting int, bounded bool) {
	if p.Kind == "" || ready >= p.MaxStagger {
		return 0, false
	}
	switch p.Kind {
	case Exponential:
		if ready == 0 {
			return max(1, p.MinInitial), true
		}
		// 100 times 0.55 is a little more than 55 in floating point.
		exact := float64(ready) * p.Multiplier * (1 - 1e-12)
		return max(1, int(min(math.Ceil(exact), math.MaxInt32))), true
	case Linear:
		step := max(1, p.Step)
		return step - ready%step, true
	default:
		return 0, false
	}
}
