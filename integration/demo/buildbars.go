package demo

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// buildBars draws a bar for each build that takes time. It implements build.Progress.
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

// Step implements build.Progress. It does not draw a build that was already done.
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

// close ends all bars, including those of failed builds.
func (b *buildBars) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bar := range b.bars {
		bar.Abort(false)
	}
	b.screen.Wait()
}
