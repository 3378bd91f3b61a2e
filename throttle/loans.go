package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// loan is the last time that starts beyond a limit were lent.
type loan struct {
	size int // of them; zero: none is out
	at   time.Time
	upTo float64 // so much may be used, though it is beyond the limit
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

// lend lends starts, each of which uses an amount beside what is used, if it is time, and
// tells whether it did: twice as many as the last time, which helped nothing; one, where that
// was long ago; as many as wait at most.
func (n *loan) lend(now, jam time.Time, after time.Duration, waiting int, used, amount float64) bool {
	due := n.due(jam, after)
	if due.IsZero() || now.Before(due) {
		return false
	}
	size := 1
	if n.size > 0 && now.Sub(n.at) <= 3*after {
		size = 2 * n.size
	}
	size = min(size, waiting)
	*n = loan{size: size, at: now, upTo: used + float64(size)*amount}
	return true
}

// repay takes back what is lent and not used. Nothing is out any more where the rest is within
// the limit.
func (n *loan) repay(used, limit float64) {
	if n.upTo = min(n.upTo, used); n.upTo <= limit {
		*n = loan{}
	}
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
	b := a.bound
	return !a.neverFits() && b.loan.lend(now, b.jam(), after, b.group.waiting, b.used, a.amount)
}

// lent tells whether the start of the pod passes a bound by a loan.
func (p *pod) lent() bool {
	return slices.ContainsFunc(p.asks, func(a ask) bool {
		return !a.bypass && a.bound.loan.size > 0 && a.bound.used+a.amount > a.bound.most
	})
}

// repay takes back what is lent to the pod's groups and not used.
func (p *pod) repay() {
	for i := range p.asks {
		p.asks[i].bound.repay()
	}
}

func (b *bound) repay() { b.loan.repay(b.used, b.most) }
