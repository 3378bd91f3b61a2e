package adaptive

import "cmp"

// Settings configure a Controller. The zero value suits a node with one core.
type Settings struct {
	// TargetPressure is the CPU pressure "some" that is the goal while starts wait, percent, up to 100. 0 means 70.
	TargetPressure float64
	// Min is how many starts are always allowed. 0 means 1.
	Min int
	// Max is the greatest limit. 0 means 1024, more than the pods of any node. A Max below Min counts as Min.
	Max int
	// Cores is the number of CPUs of the node. 0 means 1.
	Cores int
}

func (s Settings) complete() Settings {
	s.TargetPressure, s.Min, s.Cores = cmp.Or(s.TargetPressure, 70), cmp.Or(s.Min, 1), cmp.Or(s.Cores, 1)
	s.Max = max(s.Min, cmp.Or(s.Max, 1024))
	return s
}

// clamp returns limit, or Min or Max if limit is beyond them.
func (s Settings) clamp(limit int) int { return max(s.Min, min(s.Max, limit)) }
