package adaptive

import "cmp"

const (
	// DefaultTargetPressure is the CPU pressure, percent, that the loop steers for.
	DefaultTargetPressure = 70
	// MaxLimit is the greatest limit where Settings name none: more pods than a
	// node has at all.
	MaxLimit = 1024
)

// Settings bound the loop. The zero value is a good one for a node with one core.
type Settings struct {
	// TargetPressure is the CPU pressure "some" that the node shall have while
	// starts wait, percent, 0 to 100. 0: DefaultTargetPressure.
	TargetPressure float64
	// Min is how many may always start, however busy the node is. 0: 1.
	Min int
	// Max is the greatest limit. 0: MaxLimit. Where it is less than Min, Min counts.
	Max int
	// Cores is the number of CPUs of the node. 0: 1.
	Cores int
}

func (s Settings) complete() Settings {
	if !(s.TargetPressure > 0) {
		s.TargetPressure = DefaultTargetPressure
	}
	s.TargetPressure = min(100, s.TargetPressure)
	s.Min = cmp.Or(max(0, s.Min), 1)
	s.Max = max(s.Min, cmp.Or(max(0, s.Max), MaxLimit))
	s.Cores = cmp.Or(max(0, s.Cores), 1)
	return s
}

// bound keeps a limit between Min and Max.
func (s Settings) bound(limit int) int { return max(s.Min, min(s.Max, limit)) }
