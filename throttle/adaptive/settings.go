package adaptive

import "cmp"

const (
	// DefaultTargetPressure is the CPU pressure that is the goal, percent.
	DefaultTargetPressure = 70
	// MaxLimit is the greatest limit where Settings name none. It exceeds the number of pods of any node.
	MaxLimit = 1024
)

// Settings configure a Controller. The zero value suits a node with one core.
type Settings struct {
	// TargetPressure is the CPU pressure "some" that is the goal while starts wait, percent, 0 to 100.
	// 0 means DefaultTargetPressure.
	TargetPressure float64
	// Min is how many starts are always allowed. 0 means 1.
	Min int
	// Max is the greatest limit. 0 means MaxLimit. A Max below Min counts as Min.
	Max int
	// Cores is the number of CPUs of the node. 0 means 1.
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

// clamp returns limit, or Min or Max if limit is beyond them.
func (s Settings) clamp(limit int) int { return max(s.Min, min(s.Max, limit)) }
