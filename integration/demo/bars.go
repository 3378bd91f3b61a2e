package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

const (
	redrawEvery = 200 * time.Millisecond
	barWidth    = 24
)

// The colours of pods on a terminal, chosen to be told apart by everybody; the
// words beside them say the same.
const (
	grey, blue, yellow, red, plain = "\x1b[90m", "\x1b[94m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
)

// barProgress draws a line for each pod, again and again.
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

// line adds a line to the screen whose text is asked for at every redraw, for a
// terminal with that many columns.
func line(screen *mpb.Progress, text func(room int) string) *mpb.Bar {
	return screen.MustAdd(0, mpb.BarFillerFunc(func(w io.Writer, s decor.Statistics) error {
		_, err := io.WriteString(w, text(s.AvailableWidth-1))
		return err
	}), mpb.BarFillerTrim())
}

// podLine is the line of one pod: name, bar, story.
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

// buildBars draws a bar for each build that takes time. It is a build.Progress.
type buildBars struct {
	screen *mpb.Progress

	mu   sync.Mutex
	bars map[string]*mpb.Bar // guarded by mu
}

func newBuildBars(out io.Writer) *buildBars {
	return &buildBars{
		screen: mpb.New(mpb.WithOutput(out), mpb.WithRefreshRate(redrawEvery), mpb.WithAutoRefresh()),
		bars:   map[string]*mpb.Bar{},
	}
}

// Step implements build.Progress. A build that was done before is not drawn.
func (b *buildBars) Step(name string, done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bar := b.bars[name]
	switch {
	case bar == nil && total > 0 && done >= total:
		return
	case bar == nil:
		bar = b.add(name)
		b.bars[name] = bar
	}
	if total == 0 {
		return
	}
	if done >= total {
		bar.SetCurrent(int64(total))
		bar.SetTotal(-1, true)
		return
	}
	bar.SetTotal(int64(total), false)
	bar.SetCurrent(int64(done))
}

func (b *buildBars) add(name string) *mpb.Bar {
	return b.screen.New(0, mpb.BarStyle().Lbound("").Rbound("").Filler("█").Tip("█").Padding("·"),
		mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Name("  building "+name+" ", decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			switch {
			case s.Completed:
				return " done"
			case s.Total == 0:
				return " fetching the sources"
			default:
				return fmt.Sprintf(" %d of %d packages", s.Current, s.Total)
			}
		})))
}

// close ends all bars, also those of builds that failed.
func (b *buildBars) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bar := range b.bars {
		bar.Abort(false)
	}
	b.screen.Wait()
}
