package adaptive

import "time"

// keep is how much of the past is remembered; no window is longer.
const keep = 30 * time.Second

// exposure remembers how many pods were starting, to tell what a measured window
// was the effect of.
type exposure struct{ points []point }

type point struct {
	at       time.Time
	starting int
}

func (e *exposure) add(at time.Time, starting int) {
	old := 0
	for old+1 < len(e.points) && at.Sub(e.points[old+1].at) > keep {
		old++
	}
	e.points = append(e.points[old:], point{at, starting})
}

// mean is the mean number of pods that were starting in the window before at.
func (e *exposure) mean(at time.Time, window time.Duration) float64 {
	if window <= 0 {
		window = time.Millisecond
	}
	sum, end := 0.0, at
	for i := len(e.points) - 1; i >= 0 && end.After(at.Add(-window)); i-- {
		p := e.points[i]
		begin := p.at
		if begin.Before(at.Add(-window)) {
			begin = at.Add(-window)
		}
		if end.After(begin) {
			sum += float64(p.starting) * end.Sub(begin).Seconds()
			end = begin
		}
	}
	return sum / window.Seconds()
}
