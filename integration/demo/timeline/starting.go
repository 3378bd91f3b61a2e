package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Step says how many pods were starting from a moment on.
type Step struct {
	At time.Duration
	N  int
}

// StartingAtATime returns how many pods were starting, as steps in order of time, each at another
// time. The first is at zero. A start that begins when another ends does not overlap it.
func (r Run) StartingAtATime() []Step {
	var changes []Step
	for _, p := range r.Pods {
		for _, s := range p.Starts {
			if until := s.startedUntil(r.Length); until > s.Began {
				changes = append(changes, Step{At: s.Began, N: 1}, Step{At: until, N: -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	steps := []Step{{}}
	for _, c := range changes {
		last := &steps[len(steps)-1]
		if c.At == last.At {
			last.N += c.N
			continue
		}
		steps = append(steps, Step{At: c.At, N: last.N + c.N})
	}
	return steps
}

// Peak returns the highest number of pods that were starting at a time.
func (r Run) Peak() int {
	peak := 0
	for _, s := range r.StartingAtATime() {
		peak = max(peak, s.N)
	}
	return peak
}
