package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// plot is a quantity over time, drawn as a filled step line.
type plot struct {
	Title       string
	Top, Bottom float64
	Area        string // SVG path
	Ticks       []tick // ticks of the vertical axis
	Limit       *tick  // nil if there is none
	Note        string // text in place of a missing line
}

// level is the height of the line from a time on.
type level struct {
	from, to time.Duration
	share    float64 // share of the plot's height
}

func startingPlot(r timeline.Run, s scale, y float64) plot {
	p := plot{Title: "pods starting at a time", Top: y, Bottom: y + plotRise}
	steps := r.StartingAtATime()
	var levels []level
	for i, st := range steps {
		to := r.Length
		if i+1 < len(steps) {
			to = steps[i+1].At
		}
		levels = append(levels, level{from: st.At, to: to, share: float64(st.N) / float64(s.peak)})
	}
	p.Area = p.area(levels, s)
	p.Ticks = []tick{p.tick(0, "0"), p.tick(1, fmt.Sprint(s.peak))}
	if r.Limit > 0 {
		limit := p.tick(float64(r.Limit)/float64(s.peak), fmt.Sprintf("limit %d", r.Limit))
		p.Limit = &limit
	}
	return p
}

func pressurePlot(r timeline.Run, s scale, y float64) plot {
	p := plot{Title: "CPU pressure: share of time in which some task of the machine waited for a CPU", Top: y, Bottom: y + plotRise}
	p.Ticks = []tick{p.tick(0, "0 %"), p.tick(0.5, "50 %"), p.tick(1, "100 %")}
	if len(r.Pressure) == 0 {
		p.Note = "not measured: " + r.NoPressure
		return p
	}
	var levels []level
	for _, w := range r.Pressure {
		levels = append(levels, level{from: w.From, to: w.To, share: w.Some})
	}
	p.Area = p.area(levels, s)
	return p
}

func (p plot) tick(share float64, label string) tick {
	return tick{At: p.Bottom - share*(p.Bottom-p.Top), Label: label}
}

// area returns the path of the filled step line.
func (p plot) area(levels []level, s scale) string {
	if len(levels) == 0 {
		return ""
	}
	var path strings.Builder
	fmt.Fprintf(&path, "M%.1f %.1f", s.x(levels[0].from), p.Bottom)
	for _, l := range levels {
		y := p.Bottom - l.share*(p.Bottom-p.Top)
		fmt.Fprintf(&path, "L%.1f %.1fL%.1f %.1f", s.x(l.from), y, s.x(l.to), y)
	}
	fmt.Fprintf(&path, "L%.1f %.1fZ", s.x(levels[len(levels)-1].to), p.Bottom)
	return path.String()
}
