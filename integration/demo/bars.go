package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	redrawEvery = 200 * time.Millisecond
	barWidth    = 24
)

// The colours of pods on a terminal. People with any colour vision can tell them apart, and the
// words beside them say the same.
const (
	grey, blue, yellow, red, plain = "\x1b[90m", "\x1b[94m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
)

// barProgress draws a line for each pod, and redraws it continually.
type barProgress struct {
	out    io.Writer
	burn   time.Duration
	colour bool
}

func newBarProgress(out io.Writer, burn time.Duration) barProgress {
	return barProgress{out: out, burn: burn, colour: os.Getenv("NO_COLOR") == ""}
}

func (b barProgress) follow(ctx context.Context, rec *recorder, longest time.Duration) {
	screen := mpb.New(mpb.WithOutput(b.out), mpb.WithRefreshRate(redrawEvery), mpb.WithAutoRefresh())
	lines := []*mpb.Bar{line(screen, func(room int) string {
		return runewidth.Truncate(headline(rec, longest), room, "…")
	})}
	for i, v := range rec.views() {
		lines = append(lines, line(screen, func(room int) string {
			return b.podLine(rec.views()[i], len(v.name), room)
		}))
	}
	<-ctx.Done()
	for _, l := range lines {
		l.Abort(false)
	}
	screen.Wait()
}

// line adds a line to the screen. Each redraw calls text with the columns of the terminal.
func line(screen *mpb.Progress, text func(room int) string) *mpb.Bar {
	bar, _ := screen.Add(0, mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
		_, err := io.WriteString(w, text(s.AvailableWidth-1))
		return err
	}), mpb.BarFillerTrim()) // it fails only after Wait
	return bar
}

// podLine returns the line of one pod: name, bar, story.
func (b barProgress) podLine(v podView, nameWidth, room int) string {
	full := 0
	switch v.doing {
	case starting:
		full = int(barWidth * min(1, v.cpu.Seconds()/b.burn.Seconds()))
	case ready:
		full = barWidth
	}
	bar := b.paint(v, strings.Repeat("█", full)) + b.dim(strings.Repeat("·", barWidth-full))
	story := runewidth.Truncate(v.story(b.burn), max(0, room-nameWidth-barWidth-5), "…")
	return fmt.Sprintf("  %-*s %s  %s", nameWidth, v.name, bar, b.paint(v, story))
}

func (b barProgress) paint(v podView, text string) string {
	switch {
	case !b.colour:
		return text
	case v.doing == ready:
		return blue + text + plain
	case v.kills > 0:
		return red + text + plain
	case v.doing == starting:
		return yellow + text + plain
	default:
		return b.dim(text)
	}
}

func (b barProgress) dim(text string) string {
	if !b.colour {
		return text
	}
	return grey + text + plain
}
