package report

import (
	"fmt"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// chart is one run, with all positions in pixels.
type chart struct {
	Heading, Sentence string
	Width, Height     float64
	Left, Right, Top  float64
	Rows              []row
	RowsEnd           float64
	Starting          plot
	Pressure          plot
	Ticks             []tick
	AxisAt            float64
	Ideal             tick
	AllReady          *tick // nil if some pods were not ready
	Stopped           *tick // nil if the run ended by itself
}

// row is one pod.
type row struct {
	Name     string
	Y, TextY float64
	Bars     []bar
	Kills    []kill
	Label    *tick // when the pod was ready; it is nil if it was not
	Inside   bool  // the label stands in the bar
}

type bar struct {
	Kind             timeline.Kind
	X, Y, Width, Top float64
	Height           float64
	Hint             string
}

// kill is the cross at the end of a process that the liveness probe ended.
type kill struct {
	X, Y float64
	Hint string
}

func newChart(r timeline.Run, s scale) chart {
	c := chart{
		Heading: heading(r), Sentence: sentence(r),
		Width: width, Left: left, Right: right, Top: top, Ticks: s.ticks(),
		Ideal: tick{At: s.x(s.ideal), Label: fmt.Sprintf("ideal %.0f s", s.ideal.Seconds())},
	}
	for i, p := range r.Pods {
		c.Rows = append(c.Rows, newRow(r, p, s, top+float64(i)*rowHeight))
	}
	c.RowsEnd = top + float64(len(r.Pods))*rowHeight
	c.Starting = startingPlot(r, s, c.RowsEnd+plotGap)
	c.Pressure = pressurePlot(r, s, c.Starting.Bottom+plotGap)
	c.AxisAt = c.Pressure.Bottom
	c.Height = c.AxisAt + axisRoom
	if sum := r.Summary(); sum.AllReady > 0 {
		c.AllReady = &tick{At: s.x(sum.AllReady), Label: fmt.Sprintf("all ready %.1f s", sum.AllReady.Seconds())}
	} else {
		c.Stopped = &tick{At: s.x(r.Length), Label: fmt.Sprintf("stopped %.0f s", r.Length.Seconds())}
	}
	return c
}

// heading says whether the herd was paced, in words for a reader who knows neither term.
func heading(r timeline.Run) string {
	if r.Limit == 0 {
		return fmt.Sprintf("Without pod-pacemaker: all %d pods start at once", len(r.Pods))
	}
	return fmt.Sprintf("With pod-pacemaker: %d at a time, the others wait", r.Limit)
}

// sentence describes the chart in words.
func sentence(r timeline.Run) string {
	s := r.Summary()
	text := fmt.Sprintf("%d of %d pods were ready when the run was stopped after %.0f s", s.Ready, s.Pods, r.Length.Seconds())
	if s.AllReady > 0 {
		text = fmt.Sprintf("All %d pods were ready after %.1f s", s.Pods, s.AllReady.Seconds())
	}
	switch s.Kills {
	case 0:
		return text + "; the liveness probe killed none."
	case 1:
		return text + "; the liveness probe killed one start."
	default:
		return fmt.Sprintf("%s; the liveness probe killed %d starts.", text, s.Kills)
	}
}

func newRow(r timeline.Run, p timeline.Pod, s scale, y float64) row {
	out := row{Name: p.Name, Y: y, TextY: y + barHeight - 4}
	for _, span := range r.Spans(p) {
		x := s.x(span.From)
		hint := fmt.Sprintf("%s: %s from %.1f s to %.1f s", p.Name, kindWords[span.Kind], span.From.Seconds(), span.To.Seconds())
		if span.Killed {
			hint += ", then killed by the liveness probe"
			out.Kills = append(out.Kills, kill{X: s.x(span.To), Y: y + barHeight/2, Hint: hint})
		}
		out.Bars = append(out.Bars, newBar(span.Kind, x, s.x(span.To)-x, y, hint))
	}
	if at, ok := p.ReadyAt(); ok {
		out.Label, out.Inside = readyLabel(at, r.Length, s)
	}
	return out
}

// newBar returns a bar. Waiting is thinner than kinds that use the machine.
func newBar(kind timeline.Kind, x, width, y float64, hint string) bar {
	b := bar{Kind: kind, X: x, Width: width, Y: y, Height: barHeight, Hint: hint}
	if kind == timeline.Waiting {
		b.Y, b.Height = y+barHeight/2-2, 4
	}
	return b
}

var kindWords = map[timeline.Kind]string{
	timeline.Waiting:  "waits, no process",
	timeline.Starting: "starts",
	timeline.Lost:     "starts in vain",
	timeline.Ready:    "is ready",
}

// readyLabel writes when a pod was ready into its bar, or behind the bar if that is too short.
func readyLabel(at, end time.Duration, s scale) (label *tick, inside bool) {
	const room = 52
	label = &tick{At: s.x(at) + 6, Label: fmt.Sprintf("%.1f s", at.Seconds())}
	inside = s.x(end)-s.x(at) >= room
	if !inside {
		label.At = s.x(end) + 6
	}
	return label, inside
}
