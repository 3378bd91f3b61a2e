package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// progress shows a herd while it starts.
type progress interface {
	// follow shows the recording until ctx ends, and leaves the last state on the screen.
	follow(ctx context.Context, rec *recorder, longest time.Duration)
}

// plainEvery is the time between two lines in a log.
const plainEvery = 5 * time.Second

// plainProgress writes a line at intervals.
type plainProgress struct{ out io.Writer }

func (p plainProgress) follow(ctx context.Context, rec *recorder, longest time.Duration) {
	tick := time.NewTicker(plainEvery)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		fmt.Fprintln(p.out, "  "+headline(rec, longest))
	}
}

// headline describes the herd in one line.
func headline(rec *recorder, longest time.Duration) string {
	counts := map[doing]int{}
	kills := 0
	for _, v := range rec.views() {
		counts[v.doing]++
		kills += v.kills
	}
	return fmt.Sprintf("%-7s %3.0f s of at most %.0f s: %2d waiting, %2d starting, %2d ready, %2d killed",
		rec.name, time.Since(rec.begin).Seconds(), longest.Seconds(),
		counts[asking]+counts[backOff], counts[starting], counts[ready], kills)
}

// story returns the words beside a pod's bar.
func (v podView) story(burn time.Duration) string {
	var parts []string
	switch v.doing {
	case starting:
		parts = append(parts, fmt.Sprintf("starting, %.1f of %.1f CPU-s", min(v.cpu, burn).Seconds(), burn.Seconds()))
	case backOff:
		parts = append(parts, "waiting to be started again")
	default:
		parts = append(parts, string(v.doing))
	}
	if v.doing == asking && v.refused > 0 {
		parts = append(parts, "asked "+times(v.refused+1))
	}
	if v.kills > 0 {
		parts = append(parts, "killed "+times(v.kills))
	}
	return strings.Join(parts, ", ")
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}
