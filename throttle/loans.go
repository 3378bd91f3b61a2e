package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Loans
//
// A start may wait for a pod behind it in the queue: clients are not ready before their
// database is. A slot is lent (SlotLent) when for NoProgressAfter every slot was held by a
// start without progress ([Ticket.SetStalled]), while a pod waits that no other limit holds.
// If the starts on a loan stall too, the next loan is twice as large, NoProgressAfter later:
// a jam of n clients dissolves after log2(n) loans. When a start ends or makes progress,
// unused loans end. When a start gets ready, the next loan is one slot again, NoProgressAfter
// later at the earliest; and so it is when the starts are within the limit again, or three
// times NoProgressAfter after a loan.
//
// A start that has made no progress for NoProgressAfter also leaves its slot to the pods of other
// flows, at most as many as the limit in all. So pods of one namespace that hang do not leave the
// others one slot at a time.
//
// In the same way, starts are lent beyond a bound of Starting or a pacer when no pod that
// counts against it makes progress. On a resource, each such start is as large as the pod
// that was held when the loan was due. Nothing is lent beyond Running or claims.

// loan is the latest loan: starts that are allowed beyond a limit.
type loan struct {
	size   int       // starts; zero if there is no loan
	at     time.Time // when it was made, or when the latest start got ready since
	helped bool      // a start got ready since
	upTo   float64   // how much may be used, beyond the limit
}

// due returns when the next loan is due if no start has made progress since jam, or zero if no loan
// will be.
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

// lend makes a loan if one is due, and reports whether it did. Each start uses an amount beside what
// is used. The loan is twice as large as the latest one if that has not helped, or one start if it has
// or was long ago, and at most as many starts as pods wait.
func (n *loan) lend(now, jam time.Time, after time.Duration, waiting int, used, amount float64) bool {
	due := n.due(jam, after)
	if due.IsZero() || now.Before(due) {
		return false
	}
	size := 1
	if n.size > 0 && !n.helped && now.Sub(n.at) <= 3*after {
		size = 2 * n.size
	}
	size = min(size, waiting)
	*n = loan{size: size, at: now, upTo: used + float64(size)*amount}
	return true
}

// gotReady notes that a start got ready. Starts whose slots count although they wait for something else, as for an image,
// keep the loan alive: without this, each pod that is done beside them would double the next loan.
func (n *loan) gotReady(now time.Time) {
	if n.size > 0 {
		n.at, n.helped = now, true
	}
}

// repay takes back what is lent and not used. The loan ends if what is used is within the limit.
func (n *loan) repay(used, limit float64) {
	if n.upTo = min(n.upTo, used); n.upTo <= limit {
		*n = loan{}
	}
}

// jam returns when the last pod that uses a limit on starts stopped making progress while others
// wait, or zero if one makes progress.
func (b *bound) jam() time.Time {
	lends := b.reason == reasons.PolicyStarting || b.reason == reasons.PolicyPacer
	if !lends || b.used == 0 || b.progressing > 0 || b.group.waiting == 0 {
		return time.Time{}
	}
	return b.stalledSince
}

// lend makes a loan beyond the bound if one is due, and reports whether it did.
func (a *ask) lend(now time.Time, after time.Duration) bool {
	b := a.bound
	return !a.neverFits() && b.loan.lend(now, b.jam(), after, b.group.waiting, b.used, a.amount)
}

// startsOnLoan reports whether the start of the pod passes a bound by a loan.
func (p *pod) startsOnLoan() bool {
	return slices.ContainsFunc(p.asks, func(a ask) bool {
		return !a.bypass && a.bound.loan.size > 0 && a.bound.used+a.amount > a.bound.limit
	})
}

// gotReady notes that a start of the pod got ready, for what is lent beyond the bounds of its groups.
func (p *pod) gotReady(now time.Time) {
	for i := range p.asks {
		p.asks[i].bound.loan.gotReady(now)
	}
}

// repay takes back what is lent beyond the bounds of the pod's groups and not used.
func (p *pod) repay() {
	for i := range p.asks {
		p.asks[i].bound.repay()
	}
}

func (b *bound) repay() { b.loan.repay(b.used, b.limit) }
