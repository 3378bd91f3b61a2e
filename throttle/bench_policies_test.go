package throttle

import (
	"fmt"
	"testing"
	"time"
)

// groupedCrowd is crowd with so many groups, among which those that wait are spread.
// Each has one that starts, as many as its policy allows.
func groupedCrowd(b *testing.B, waiting, groups int) (l *Limiter, now time.Time) {
	b.Helper()
	now = time.Now()
	one := int64(1)
	l = New(now, Settings{MaxConcurrent: groups, FillEvery: time.Nanosecond})
	l.SetPolicies(now, map[string]GroupLimits{"images": {Starting: Bound{Pods: &one}}})
	for i := range waiting + groups {
		l.Join(now, Request{UID: fmt.Sprint(i), Groups: in(benchKey(i%groups), Amounts{"cpu": 100})}).Attend(now)
		now = now.Add(time.Microsecond)
	}
	l.Drain()
	if l.starting.len() != groups || l.waitingLocked() != waiting || len(l.classes) != groups+1 {
		b.Fatalf("%d starting, %d waiting, %d queues", l.starting.len(), l.waitingLocked(), len(l.classes))
	}
	return l, now
}

func benchKey(i int) GroupKey { return GroupKey{Policy: "images", Group: fmt.Sprint(i)} }

// Behind a hundred groups that a policy holds, one that no policy bounds, and one of
// a group.
func BenchmarkGroups(b *testing.B) {
	const groups = 100
	for _, waiting := range herds[1:] {
		for name, of := range map[string][]Membership{"free": nil, "held": in(benchKey(0), nil)} {
			run := func(what string, do func(t *Ticket, now time.Time)) {
				b.Run(fmt.Sprintf("%s/%s/waiting=%d", what, name, waiting), func(b *testing.B) {
					l, now := groupedCrowd(b, waiting, groups)
					t := l.Join(now, Request{UID: "new", Groups: of})
					b.ReportAllocs()
					for b.Loop() {
						do(t, now)
					}
				})
			}
			run("TryStartRefused", func(t *Ticket, now time.Time) { t.TryStart(now) })
			run("LetUp", func(t *Ticket, now time.Time) { t.LetUp(now, waitable) })
			run("AttendLeave", func(t *Ticket, now time.Time) { t.Attend(now); t.Leave(now) })
		}
	}
}

// A slot ends in one of so many groups, the next of the group is admitted, and a new pod
// takes the last place.
func BenchmarkEndAdmitsNextOfGroups(b *testing.B) {
	for _, groups := range []int{1, 100, 1_000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			l, now := groupedCrowd(b, 10_000, groups)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				t := l.starting.first()
				of := []Membership{{Key: t.member.parts[0].group.key, Requests: t.member.parts[0].asks}}
				t.End(now, Ready)
				l.Finished(now, t.uid)
				l.Join(now, Request{UID: t.UID(), Groups: of}).Attend(now)
				l.Drain()
			}
			b.StopTimer()
			if l.starting.len() != groups || l.waitingLocked() != 10_000 {
				b.Fatalf("%d starting, %d waiting", l.starting.len(), l.waitingLocked())
			}
		})
	}
}

// A decision allocates nothing where policies hold others, and where they hold the one
// who asks.
func TestADecisionAmongGroupsAllocatesNothing(t *testing.T) {
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"images": {Starting: pods(1)}})
	for i := range 200 {
		n.grouped(fmt.Sprint(i), in(benchKey(i%20), nil))
	}
	for name, of := range map[string][]Membership{"free": nil, "held": in(benchKey(0), nil), "not held": in(benchKey(1), nil)} {
		ticket := n.l.Join(n.now, Request{UID: name, Groups: of})
		if got := testing.AllocsPerRun(100, func() { ticket.TryStart(n.now) }); got > 0 {
			t.Errorf("%s: a refusal allocates %g times", name, got)
		}
		if got := testing.AllocsPerRun(100, func() { ticket.LetUp(n.now, waitable) }); got > 0 {
			t.Errorf("%s: to let nobody up allocates %g times", name, got)
		}
	}
}
