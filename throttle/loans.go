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

// SetStalled says that the Starting pod has made no progress since a time, or, with the
// zero time, that it does or that nobody can tell.
func (l *Limiter) SetStalled(now time.Time, uid string, since time.Time) {
	now = l.lock(now)
	defer l.mu.Unlock()
	t := l.tickets[uid]
	if t == nil || t.state != Starting {
		return
	}
	if !since.IsZero() {
		since = later(t.admitted, earlier(now, since))
	}
	if t.stalled.Equal(since) {
		return
	}
	defer l.changedLocked()
	t.stalled = since
	l.counted = false
	if since.IsZero() {
		l.repayLocked()
		t.pod.repay()
	}
	l.admitLocked(now)
}

// jamLocked gives since when every slot, those lent with them, has been held by a start
// that makes no progress; zero: not all are.
func (l *Limiter) jamLocked() (since time.Time) {
	if l.limit <= 0 || l.settings.NoProgressAfter <= 0 || l.slotsLocked() < l.capacityLocked() {
		return time.Time{}
	}
	for _, t := range l.inFlight {
		if t.slot && t.stalled.IsZero() {
			return time.Time{}
		}
		if t.slot {
			since = later(since, t.stalled)
		}
	}
	return since
}

// lendLocked lends slots if it is time, and tells whether it did.
func (l *Limiter) lendLocked(now time.Time) bool {
	after, jam := l.settings.NoProgressAfter, l.jamLocked()
	if jam.IsZero() || now.Before(l.loan.due(jam, after)) {
		return false
	}
	l.loan = loan{size: min(l.loan.next(now, after), len(l.queue.arrivals)), at: now}
	l.lentUpTo = l.slotsLocked() + l.loan.size
	return true
}

// repayLocked takes back what is lent and not used above the limit.
func (l *Limiter) repayLocked() {
	if l.lentUpTo = min(l.lentUpTo, l.slotsLocked()); l.limit <= 0 || l.lentUpTo <= l.limit {
		l.loan, l.lentUpTo = loan{}, 0
	}
}

// soonLentLocked gives how many starts loans will allow within half a minute, while nothing
// that starts makes progress: with the one that is out or due, the next two, each twice as
// large.
func (l *Limiter) soonLentLocked() int {
	if l.loan.size == 0 && l.jamLocked().IsZero() {
		return 0
	}
	return 7 * max(1, l.loan.size)
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

// loanDueLocked gives when the next loan to a group is, as long as it is jammed; zero: it
// is not.
func (l *Limiter) loanDueLocked(g *group) time.Time {
	after := l.settings.NoProgressAfter
	if after <= 0 || !g.jammed() {
		return time.Time{}
	}
	return g.loan.due(g.stalledSince, after)
}

// lendToGroupLocked lends starts beyond the limits of a group that holds a pod with a
// waiter, if it is time, and tells whether it did.
func (l *Limiter) lendToGroupLocked(now time.Time, h hold) bool {
	if r := h.bound.reason; r != reasons.PolicyStarting && r != reasons.PolicyPacer || h.never() {
		return false
	}
	g := h.bound.group
	due := l.loanDueLocked(g)
	if due.IsZero() || now.Before(due) {
		return false
	}
	size := min(g.loan.next(now, l.settings.NoProgressAfter), g.waiting)
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
