package adaptive

import "time"

// remembered is how much of the past is kept; a longer window is taken to be so
// long.
const remembered = time.Minute

// exposure remembers how many pods were starting, to tell of how many starts the
// load of a window was.
type exposure struct{ points []point }

// point says that from at on, until the next point, so many were starting.
type point struct {
	at       time.Time
	starting int
}

// add takes note of a sample, and tells whether it is later than the last.
func (e *exposure) add(s Sample) bool {
	if n := len(e.points); n > 0 && !s.At.After(e.points[n-1].at) {
		return false
	}
	old := 0
	for old+1 < len(e.points) && s.At.Sub(e.points[old+1].at) > remembered {
		old++
	}
	e.points = append(e.points[old:], point{s.At, s.Starting})
	return true
}

// mean is the mean number of pods that were starting in the window before at. What
// was before the first sample counts as none.
func (e *exposure) mean(at time.Time, window time.Duration) float64 {
	window = min(window, remembered)
	sum, from := 0.0, at.Add(-window)
	for i := len(e.points) - 1; i > 0 && e.points[i].at.After(from); i-- {
		begin := e.points[i-1].at
		if begin.Before(from) {
			begin = from
		}
		sum += float64(e.points[i-1].starting) * e.points[i].at.Sub(begin).Seconds()
	}
	return sum / window.Seconds()
}
