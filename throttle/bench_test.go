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

// One asks for a slot, and there is none.
func BenchmarkTryStartRefused(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			t := l.Join(now, Request{UID: "new"})
			b.ReportAllocs()
			for b.Loop() {
				if t.TryStart(now).Admitted {
					b.Fatal("admitted")
				}
			}
		})
	}
}

// One asks for a slot and gets it, while so many others are away.
func BenchmarkTryStartAdmitted(b *testing.B) {
	const batch = 10_000
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			now := time.Now()
			l := New(now, Settings{MaxConcurrent: 1 << 30, FillEvery: 1, Burst: 1 << 30})
			for i := range waiting {
				l.Join(now, Request{UID: fmt.Sprint(i)})
			}
			var tickets []*Ticket
			b.ReportAllocs()
			for b.Loop() {
				if len(tickets) == 0 {
					b.StopTimer()
					tickets = fresh(l, now, batch)
					b.StartTimer()
				}
				if !tickets[0].TryStart(now).Admitted {
					b.Fatal("refused")
				}
				tickets = tickets[1:]
			}
		})
	}
}

// fresh ends all starts, and lets so many new tickets join.
func fresh(l *Limiter, now time.Time, n int) (tickets []*Ticket) {
	for t := l.starting.first(); t != nil; t = l.starting.first() {
		t.End(now, Deleted)
	}
	for i := range n {
		tickets = append(tickets, l.Join(now, Request{UID: fmt.Sprint("new", i), Arrived: now.Add(-time.Duration(i*7919%n) * time.Millisecond)}))
	}
	l.Drain()
	return tickets
}

// Neither answer to one who asks allocates. (The list of events grows now and
// then.)
func TestADecisionAllocatesNothing(t *testing.T) {
	n := newNode(t, Settings{MaxConcurrent: 1000})
	tickets := fresh(n.l, n.now, 2000)
	next := 0
	try := func() { tickets[next].TryStart(n.now); next++ }
	if got := testing.AllocsPerRun(900, try); got > 0 {
		t.Errorf("an admission allocates %g times", got)
	}
	next = 1000
	for n.l.starting.len() < 1000 {
		n.join(fmt.Sprint("more", n.l.seq)).TryStart(n.now)
	}
	if got := testing.AllocsPerRun(900, try); got > 0 {
		t.Errorf("a refusal allocates %g times", got)
	}
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
			if l.starting.len() != 1 || l.waitingLocked() != waiting {
				b.Fatalf("%d starting, %d waiting", l.starting.len(), l.waitingLocked())
			}
		})
	}
}

// Before the image pull: may this pod come up?
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

// The time passes and nothing happens.
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

// What the run loop of a daemon asks for in each round.
func BenchmarkTurns(b *testing.B) {
	for _, waiting := range herds {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l, now := crowd(b, waiting)
			b.ReportAllocs()
			for b.Loop() {
				l.Turns(now)
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
