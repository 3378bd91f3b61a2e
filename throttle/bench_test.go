package throttle

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// benched returns a limiter whose one slot is held. The given number of pods waits, from ten namespaces in turn, and
// every second pod has a waiter. The pods are in the given number of groups, which a policy holds.
func benched(b *testing.B, waiting, groups int) (l *Limiter, last *Ticket) {
	b.Helper()
	l = New(t0, Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	one := int64(0)
	l.SetPolicies(t0, map[string]GroupLimits{"p": {Starting: Bound{Pods: &one}}})
	l.Join(t0, Request{UID: "holder"}).Wait(t0)
	for i := range waiting {
		r := Request{UID: fmt.Sprint(i), Flow: fmt.Sprint(i * 10 / waiting)}
		if groups > 0 && i%2 == 0 {
			r.Groups = []Membership{{Key: GroupKey{"p", fmt.Sprint(i % groups)}, Requests: Amounts{"cpu": 100}}}
		}
		last = l.Join(t0, r)
		if i%2 == 0 {
			last.Wait(t0)
		}
	}
	l.Drain()
	return l, last
}

// cpuTime reports the CPU time of an operation and its allocations. On a busy machine the wall clock says little.
func cpuTime(b *testing.B) (stop func()) {
	b.Helper()
	used := func() (d time.Duration) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	began := used()
	return func() { b.ReportMetric(float64((used()-began).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

func BenchmarkDecision(b *testing.B) {
	for _, groups := range []int{0, 20} {
		for _, waiting := range []int{10, 250, 5_000} {
			b.Run(fmt.Sprintf("waiting=%d/groups=%d/refused", waiting, groups), func(b *testing.B) {
				_, last := benched(b, waiting, groups)
				defer cpuTime(b)()
				for b.Loop() {
					last.TryStart(t0)
				}
			})
			b.Run(fmt.Sprintf("waiting=%d/groups=%d/candidates", waiting, groups), func(b *testing.B) {
				l, _ := benched(b, waiting, groups)
				defer cpuTime(b)()
				for b.Loop() {
					l.queue.stale = true // as after each admission
					l.admission.candidates(t0, nil)
				}
			})
			b.Run(fmt.Sprintf("waiting=%d/groups=%d/counted-anew", waiting, groups), func(b *testing.B) {
				l, _ := benched(b, waiting, groups)
				defer cpuTime(b)()
				for b.Loop() {
					l.queue.stale, l.groups.counted = true, false // as after a pod of a group was admitted
					l.admission.candidates(t0, nil)
				}
			})
			b.Run(fmt.Sprintf("waiting=%d/groups=%d/reserve", waiting, groups), func(b *testing.B) {
				_, last := benched(b, waiting, groups)
				defer cpuTime(b)()
				for b.Loop() {
					last.Reserve(t0, 100*time.Second, RetriedSoon)
				}
			})
			b.Run(fmt.Sprintf("waiting=%d/groups=%d/turn", waiting, groups), func(b *testing.B) {
				l, _ := benched(b, waiting, groups)
				defer cpuTime(b)()
				uid := "holder"
				for i := 0; b.Loop(); i++ {
					l.Lookup(uid).End(t0, reasons.Ready)
					t := l.Join(t0, Request{UID: fmt.Sprint("new", i), Flow: fmt.Sprint(i % 10)})
					t.Wait(t0)
					uid = l.slots.inFlight[0].uid
					l.Drain()
				}
			})
		}
	}
}
