package throttle

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

var herds = []int{10, 1_000, 100_000}

// crowd gives a limiter with one slot, which is taken, and so many who are
// present and wait.
func crowd(b *testing.B, waiting int) (l *Limiter, now time.Time) {
	b.Helper()
	now = time.Now()
	l = New(now, Settings{MaxConcurrent: 1, FillEvery: time.Nanosecond})
	for i := range waiting + 1 {
		l.Join(now, Request{UID: fmt.Sprint(i)}).Attend(now)
		now = now.Add(time.Microsecond)
	}
	l.Drain()
	return l, now
}

// A new pod comes, has to wait, gives up and is gone.
func BenchmarkJoinAttendLeaveEnd(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				t := l.Join(now, Request{UID: "new"})
				t.Attend(now)
				t.Leave(now)
				t.End(now, Deleted)
				l.Drain()
			}
		})
	}
}

// One who waits already asks again, and has to wait on.
func BenchmarkAttendLeave(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			t := l.Join(now, Request{UID: "new"})
			b.ReportAllocs()
			for b.Loop() {
				t.Attend(now)
				t.Leave(now)
			}
		})
	}
}

// A slot ends, the next is admitted, and a new pod takes the last place.
func BenchmarkEndAdmitsNext(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				starting := l.starting.first()
				starting.End(now, Ready)
				l.Join(now, Request{UID: starting.UID()}).Attend(now)
				l.Drain()
			}
			b.StopTimer()
			if l.starting.len() != 1 || l.waiting.len() != waiting {
				b.Fatalf("%d starting, %d waiting", l.starting.len(), l.waiting.len())
			}
		})
	}
}

// Before the image pull: may this pod come up? All who wait are looked at.
func BenchmarkLetUp(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			t := l.Join(now, Request{UID: "new"})
			b.ReportAllocs()
			for b.Loop() {
				t.LetUp(now, waitable)
			}
		})
	}
}

// The time passes and nothing happens. All who wait are looked at.
func BenchmarkAdvance(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				l.Advance(now)
			}
		})
	}
}

// The limits of which this package could be made, in the same run.
func BenchmarkReference(b *testing.B) {
	b.Run("rate.Limiter.Allow", func(b *testing.B) {
		l := rate.NewLimiter(rate.Every(time.Hour), 1)
		b.ReportAllocs()
		for b.Loop() {
			l.Allow()
		}
	})
	b.Run("semaphore.Weighted.TryAcquire", func(b *testing.B) {
		s := semaphore.NewWeighted(1)
		b.ReportAllocs()
		for b.Loop() {
			if s.TryAcquire(1) {
				s.Release(1)
			}
		}
	})
}
