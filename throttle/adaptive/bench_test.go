package adaptive

import (
	"fmt"
	"testing"
	"time"
)

// What the limiter does under the lock of its owner each time that a start ends or a pod comes: with known starts that idle
// for unlike times and burn little.
func BenchmarkAllow(b *testing.B) {
	for _, n := range []struct{ underWay, waiting int }{{10, 20}, {30, 80}, {110, 500}} {
		b.Run(fmt.Sprintf("underWay=%d/waiting=%d", n.underWay, n.waiting), func(b *testing.B) {
			c := New(Settings{Cores: 64})
			c.began, c.limit = dawn, 16
			known := func(i int) Start {
				return Start{Kind: fmt.Sprint(i % 20), Cost: cost(float64(5+i%17), 0.2+0.1*float64(i%5)), Patience: time.Minute}
			}
			underWay, waiting := make([]Start, n.underWay), make([]Start, n.waiting)
			for i := range underWay {
				underWay[i] = known(i)
				underWay[i].Began = dawn
			}
			for i := range waiting {
				waiting[i] = known(i)
			}
			// For this one, not all can start at once.
			waiting[n.waiting-1] = Start{Kind: "tight", Cost: cost(5, 10), Patience: 20 * time.Second}
			joined := 0
			for b.Loop() {
				joined = allow(c, dawn.Add(3*time.Second), underWay, n.underWay, waiting) - n.underWay
			}
			b.ReportMetric(float64(joined), "joined")
		})
	}
}
