package throttle

import "time"

// lostAfter is how long a start has to have lasted to be lost when it breaks off. One
// that breaks off earlier does so by itself: a probe has to fail several times before it
// kills.
const lostAfter = 10 * time.Second

// tally is how the starts that the limiter admitted to a slot ended, as the adaptive
// limit is told of it.
type tally struct {
	made int       // those that say how long starts take
	lost time.Time // the latest admission of one that was lost; zero: none was
}

func (y *tally) add(admitted time.Time, took time.Duration, reason Reason) {
	switch {
	case reason.tellsPace():
		y.made++
	case reason.breaksOff() && took >= lostAfter:
		y.lost = later(y.lost, admitted)
	}
}
