// Package report draws the runs of a herd as one self-contained HTML file: no script, no font, no
// image, no network.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// Page is the content of the report. All texts are plain text.
type Page struct {
	// Title and Lead say what was run. Brief is Lead in a line of at most 120 letters.
	Title, Lead, Brief string
	// Warning says what spoils the figures. Empty: nothing known.
	Warning string
	// Rows compare the runs; the first row is the head.
	Rows []timeline.Row
	// Runs are drawn in this order, to one scale.
	Runs []timeline.Run
	// Ideal is the time in which the CPUs can do the work. The report draws it as a line.
	Ideal time.Duration
	// Notes are paragraphs on the measurement.
	Notes []string
	// Facts are what the figures depend on: the machine, the versions, the day.
	Facts []Fact
}

// Fact is a name and a value.
type Fact struct{ Name, Value string }

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"px": func(v float64) string { return fmt.Sprintf("%.1f", v) },
}).Parse(pageText))

// Write writes the report. It blocks only on w.
func Write(w io.Writer, p Page) error {
	view := struct {
		Page
		Charts []chart
	}{Page: p}
	s := newScale(p.Runs, p.Ideal)
	for _, r := range p.Runs {
		view.Charts = append(view.Charts, newChart(r, s))
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("drawing the report: %w", err)
	}
	return nil
}
