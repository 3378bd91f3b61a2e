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
	left int // of a group: so many may still pass its limits on starts
}

// due gives when the next loan is, of starts that have all made no progress since stalled.
func (n loan) due(stalled time.Time, after time.Duration) time.Time {
	if n.size == 0 {
		return stalled.Add(after)
	}
	return later(stalled.Add(after/2), n.at.Add(after))
}

// next gives the size of a loan at the given time: twice that of the last, which helped
// nothing; one, where the last was long ago.
func (n loan) next(at time.Time, after time.Duration) int {
	if n.size == 0 || at.Sub(n.at) > 3*after {
		return 1
	}
	return 2 * n.size
}

// jammed tells whether every pod that counts against a limit on the starts of the group
// makes no progress.
func (g *group) jammed() bool {
	paced := g.running - g.ready
	return g.waiting > 0 && g.loan.left == 0 && slices.ContainsFunc(g.bounds, func(b bound) bool {
		return b.reason == reasons.PolicyStarting && g.starting > 0 && g.stalledStarting == g.starting ||
			b.reason == reasons.PolicyPacer && paced > 0 && g.stalledPaced == paced
	})
}

// loanDue gives when the next loan is, as long as the group is jammed; zero: it is not.
func (g *group) loanDue(after time.Duration) time.Time {
	if after <= 0 || !g.jammed() {
		return time.Time{}
	}
	return g.loan.due(g.stalledSince, after)
}

// lend lends starts beyond the limits of the group that holds a pod with a waiter, if it is
// time, and tells whether it did.
func (a *ask) lend(now time.Time, after time.Duration) bool {
	if r := a.bound.reason; r != reasons.PolicyStarting && r != reasons.PolicyPacer || a.never() {
		return false
	}
	g := a.bound.group
	due := g.loanDue(after)
	if due.IsZero() || now.Before(due) {
		return false
	}
	size := min(g.loan.next(now, after), g.waiting)
	g.loan = loan{size: size, at: now, left: size}
	return true
}

// lent tells whether the start of the pod passes the limits of a group by a loan.
func (p *pod) lent() bool {
	return p != nil && slices.ContainsFunc(p.in, func(in member) bool { return !in.bypass && in.group.loan.left > 0 })
}

// repay takes back what is lent to the pod's groups and not used.
func (p *pod) repay() {
	if p == nil {
		return
	}
	for i := range p.in {
		p.in[i].group.loan.left = 0
	}
}

// spendLoans takes one start from what was lent to the pod's groups.
func (p *pod) spendLoans() {
	for i := range p.in {
		if n := &p.in[i].group.loan; n.left > 0 && !p.in[i].bypass {
			n.left--
		}
	}
}
