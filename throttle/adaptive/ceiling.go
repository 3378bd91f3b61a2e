package adaptive

import (
	"math"
	"time"
)

// ceiling remembers how many starts the node bore when it was full last. Starts that
// began together end together: then the window is of their successors, which do not
// burn CPU yet, and what it shows of them is too little.
type ceiling struct {
	starts float64
	at     time.Time // zero: the node was not full yet
}

// bound gives how many starts may be tried, of those that are wanted: no more than
// the node bore when it was full, but twice as many for each window that has passed
// since, after the first.
func (c ceiling) bound(at time.Time, window time.Duration, want float64) float64 {
	if c.at.IsZero() {
		return want
	}
	windows := at.Sub(c.at).Seconds() / window.Seconds()
	return min(want, c.starts*math.Exp2(max(0, windows-1)))
}
