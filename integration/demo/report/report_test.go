package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

const sec = time.Second

func examplePage() Page {
	unpaced := timeline.Run{
		Name: "unpaced", Length: 70 * sec,
		Pods: []timeline.Pod{
			{Name: "herd-1", Starts: []timeline.Start{{Began: sec, Ended: 20 * sec, Killed: true}, {Began: 21 * sec, Ready: 40 * sec}}},
			{Name: "herd-2", Starts: []timeline.Start{{Began: sec, Ended: 19 * sec, Killed: true}, {Began: 60 * sec}}},
			{Name: "herd-3<script>"},
		},
		Pressure: []timeline.Pressure{{From: 0, To: 35 * sec, Some: 1}, {From: 35 * sec, To: 70 * sec, Some: 0.5}},
	}
	paced := timeline.Run{
		Name: "paced", Limit: 1, Length: 30 * sec, NoPressure: "no such file",
		Pods: []timeline.Pod{
			{Name: "herd-1", Starts: []timeline.Start{{Began: sec, Ready: 9 * sec}}},
			{Name: "herd-2", Starts: []timeline.Start{{Began: 11 * sec, Ready: 19 * sec}}},
			{Name: "herd-3<script>", Starts: []timeline.Start{{Began: 21 * sec, Ready: 29500 * time.Millisecond}}},
		},
	}
	return Page{
		Title: "A & B", Lead: "lead", Brief: "in one line", Warning: "busy <machine>", Ideal: 24 * sec, Runs: []timeline.Run{unpaced, paced},
		Rows:  timeline.Compare(24*sec, unpaced, paced),
		Notes: []string{"note"}, Facts: []Fact{{"Machine", "2 CPUs"}},
	}
}

func render(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, examplePage()))
	return out.String()
}

func TestReportNeedsNothingFromOutside(t *testing.T) {
	t.Parallel()
	html := render(t)
	for _, outside := range []string{"http:", "https:", "//", "src=", "<link", "@import", "<script", "<iframe", "<img"} {
		assert.NotContains(t, html, outside)
	}
	// The page has everything that it refers to.
	for _, ref := range regexp.MustCompile(`(?:href="|url\()#([a-z]+)`).FindAllStringSubmatch(html, -1) {
		assert.Contains(t, html, `id="`+ref[1]+`"`)
	}
	assert.Contains(t, html, `id="kill"`)
}

func TestReportDrawsEveryPodOfBothRuns(t *testing.T) {
	t.Parallel()
	html := render(t)
	assert.Equal(t, 2, strings.Count(html, `<svg class="chart"`))
	for name, want := range map[string]int{
		`class="name"`:                                6,
		`<rect class="lost" x`:                        2,
		`<rect class="ready" x`:                       4,
		`<use href="#kill" x="`:                       3, // one is the legend's
		`>herd-3&lt;script&gt;<`:                      2,
		`herd-1: starts in vain`:                      2, // once for the bar and once for the cross
		`>limit 1<`:                                   1,
		`>not measured: no such file<`:                1,
		`>all ready 29.5 s<`:                          1,
		`>stopped 70 s<`:                              1,
		`>ideal 24 s<`:                                2,
		`seconds since all pods were asked`:           2,
		`2 starts.`:                                   2, // in the sentence and in the picture's label
		`<td>29.5 s (1.23 x ideal)</td>`:              1,
		`<text class="behind"`:                        1, // the bar of the last ready pod has no room
		`<text class="inside"`:                        3,
		`<p class="warning">busy &lt;machine&gt;</p>`: 1,
		`prefers-color-scheme: dark`:                  1,
		`<title>A &amp; B</title>`:                    1,
		`pods starting at a time</text>`:              2,
		`<path class="area"`:                          3, // the pressure of the second run is unknown
	} {
		assert.Equal(t, want, strings.Count(html, name), name)
	}
}

// Every picture is well-formed, and nothing lies outside of it.
func TestPicturesAreWellFormed(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`^-?[0-9]+[.][0-9]$`)
	for _, svg := range regexp.MustCompile(`(?s)<svg class="chart".*?</svg>`).FindAllString(render(t), -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			element, ok := token.(xml.StartElement)
			if !ok || element.Name.Local != "rect" {
				continue
			}
			for _, a := range element.Attr {
				if a.Name.Local != "class" {
					assert.Regexp(t, number, a.Value)
					assert.NotContains(t, a.Value, "-", "%s of a bar", a.Name.Local)
				}
			}
		}
	}
}

func TestScaleHasRoomForTheLongestRun(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{5 * sec, 61 * sec, 70 * sec, 85 * sec, 600 * sec} {
		s := newScale([]timeline.Run{{Length: length}, {Length: sec}}, 48*sec)
		assert.Greater(t, s.end, length)
		assert.Zero(t, s.end%s.step)
		assert.LessOrEqual(t, len(s.ticks()), 17)
		assert.InDelta(t, left, s.x(0), 0.01)
		assert.InDelta(t, right, s.x(s.end), 0.01)
	}
}
