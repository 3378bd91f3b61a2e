package adaptive

import "time"

// remembered is how much of the past counts. A longer window is cut to it. A loss counts until nothing has started or
// waited for this time.
const remembered = time.Minute

// exposure remembers how many pods were starting, to say how many made the load of a window.
type exposure struct{ points []point }

// point is how many pods were starting from a moment on, until the moment of the next point.
type point struct {
	at       time.Time
	starting int
}

// add records a sample, and reports whether it is later than the last one.
func (e *exposure) add(s Sample) bool {
	if n := len(e.points); n > 0 && !s.At.After(e.points[n-1].at) {
		return false
	}
	for len(e.points) > 1 && s.At.Sub(e.points[1].at) > remembered {
		e.points = e.points[1:]
	}
	e.points = append(e.points, point{s.At, s.Starting})
	return true
}

// mean returns the mean number of pods that were starting in the window before at. Time before the first sample counts
// as no pod.
func (e *exposure) mean(at time.Time, window time.Duration) float64 {
	window = min(window, remembered)
	sum, from := 0.0, at.Add(-window)
	for i := len(e.points) - 1; i > 0 && e.points[i].at.After(from); i-- {
		last, until := e.points[i-1], e.points[i].at
		sum += float64(last.starting) * min(until.Sub(last.at), until.Sub(from)).Seconds()
	}
	return sum / window.Seconds()
}
