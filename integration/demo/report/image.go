package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed image.svg
var imageText string

// An SVG file is XML, and a template for HTML quotes text as XML requires.
var image = template.Must(template.New("image").Funcs(template.FuncMap{
	"px": func(v float64) string { return fmt.Sprintf("%.1f", v) },
}).Parse(imageText))

// Space in the image, in pixels: for its title and legend, for a warning, and for the heading and
// the axis of each chart.
const (
	legendRoom  = 124.0
	warningRoom = 26.0
	headingRoom = 66.0
	ticksRoom   = 30.0
)

// WriteImage writes only the timelines of the runs, one below the other, as a self-contained SVG
// file. It blocks only on w.
func WriteImage(w io.Writer, p Page) error {
	type placed struct {
		chart
		At, End float64
	}
	view := struct {
		Page
		Width, Height float64
		Charts        []placed
	}{Page: p, Width: width, Height: legendRoom}
	if p.Warning != "" {
		view.Height += warningRoom
	}
	s := newScale(p.Runs, p.Ideal)
	for _, r := range p.Runs {
		c := placed{chart: newChart(r, s), At: view.Height + headingRoom}
		c.End = c.RowsEnd + ticksRoom
		view.Charts = append(view.Charts, c)
		view.Height = c.At + c.End
	}
	view.Height += 10
	if err := image.Execute(w, view); err != nil {
		return fmt.Errorf("drawing the image: %w", err)
	}
	return nil
}
