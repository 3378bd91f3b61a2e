package report

import (
	"fmt"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// Positions in a chart, in pixels.
const (
	width     = 1120.0
	left      = 92.0 // left edge of the plot, beside the pods' names
	right     = 1064.0
	top       = 26.0 // top of the first pod, below the labels of lines
	rowHeight = 20.0
	barHeight = 16.0
	plotGap   = 40.0
	plotRise  = 72.0
	axisRoom  = 50.0
)

// scale is shared by all charts of a page.
type scale struct {
	ideal time.Duration
	end   time.Duration // end of the time axis, a multiple of step
	step  time.Duration // time between its ticks
	peak  int           // maximum of the axis of starts at a time
}

func newScale(runs []timeline.Run, ideal time.Duration) scale {
	s := scale{ideal: ideal, peak: 1}
	longest := ideal
	for _, r := range runs {
		longest = max(longest, r.Length)
		s.peak = max(s.peak, r.Peak(), r.Limit)
	}
	for _, seconds := range []int{1, 2, 5, 10, 20, 30, 60, 120, 300} {
		if s.step = time.Duration(seconds) * time.Second; longest <= 15*s.step {
			break
		}
	}
	// Behind the longest run there is space for the label of its last pod.
	s.end = (longest + s.step/2).Truncate(s.step) + s.step
	return s
}

// x returns the position of a time.
func (s scale) x(at time.Duration) float64 {
	return left + (right-left)*at.Seconds()/s.end.Seconds()
}

// tick is a mark on an axis.
type tick struct {
	At    float64
	Label string
}

func (s scale) ticks() []tick {
	var ticks []tick
	for at := time.Duration(0); at <= s.end; at += s.step {
		ticks = append(ticks, tick{At: s.x(at), Label: fmt.Sprint(at.Seconds())})
	}
	return ticks
}
