package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// loan is the last time that starts beyond a limit were lent.
type loan struct {
	size int // zero: none is out
	at   time.Time
	left int // of a bound: so many may still pass it
}

// due gives when the next loan is, where no start has made progress since jam; zero: never.
func (n *loan) due(jam time.Time, after time.Duration) time.Time {
	switch {
	case jam.IsZero() || after <= 0:
		return time.Time{}
	case n.size == 0:
		return jam.Add(after)
	default:
		return later(jam.Add(after/2), n.at.Add(after))
	}
}

// lend lends, if it is time, and tells whether it did: twice as many starts as the last time,
// which helped nothing; one, where that was long ago.
func (n *loan) lend(now, jam time.Time, after time.Duration, most int) bool {
	due := n.due(jam, after)
	if due.IsZero() || now.Before(due) {
		return false
	}
	size := 1
	if n.size > 0 && now.Sub(n.at) <= 3*after {
		size = 2 * n.size
	}
	size = min(size, most)
	*n = loan{size: size, at: now, left: size}
	return true
}

// jam gives since when no pod that uses a bound on starts has made progress, while others
// wait; zero: one does.
func (b *bound) jam() time.Time {
	lends := b.reason == reasons.PolicyStarting || b.reason == reasons.PolicyPacer
	if !lends || b.used == 0 || b.moving > 0 || b.group.waiting == 0 {
		return time.Time{}
	}
	return b.stalled
}

// lend lends starts beyond the bound that holds a pod with a waiter, if it is time.
func (a *ask) lend(now time.Time, after time.Duration) bool {
	return !a.never() && a.bound.loan.lend(now, a.bound.jam(), after, a.bound.group.waiting)
}

// lent tells whether the start of the pod passes a bound by a loan.
func (p *pod) lent() bool {
	return slices.ContainsFunc(p.asks, func(a ask) bool { return !a.bypass && a.bound.loan.left > 0 })
}

// repay takes back what is lent to the pod's groups and not used.
func (p *pod) repay() {
	for i := range p.asks {
		p.asks[i].bound.loan.left = 0
	}
}

// spendLoans takes one start from what was lent to the pod's groups.
func (p *pod) spendLoans() {
	for i := range p.asks {
		if a := &p.asks[i]; !a.bypass {
			a.bound.loan.left = max(0, a.bound.loan.left-1)
		}
	}
}
