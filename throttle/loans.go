package throttle

import "time"

// loan is the last time that starts beyond a limit were lent.
type loan struct {
	size int // zero: none is out
	at   time.Time
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

// foreseeLoans is how far loans are foreseen: so long a pod that is refused now takes at
// most to come back, 15 seconds, and to wait.
const foreseeLoans = 15*time.Second + arrivalGrace

// SetStalled says that the Starting pod has made no progress since a time, or, with the
// zero time, that it does or that nobody can tell.
func (l *Limiter) SetStalled(now time.Time, uid string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
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
	l.admitLocked(now)
}

// lastStallLocked gives since when every slot, those lent with them, has been held by a
// start that makes no progress; zero: not all are.
func (l *Limiter) lastStallLocked() (last time.Time) {
	if l.limit <= 0 || l.settings.noProgressAfter() <= 0 {
		return time.Time{}
	}
	slots := 0
	for _, t := range l.inFlight {
		if !t.slot {
			continue
		}
		if t.stalled.IsZero() {
			return time.Time{}
		}
		slots++
		last = later(last, t.stalled)
	}
	if slots < l.capacityLocked() {
		return time.Time{}
	}
	return last
}

func (l *Limiter) jammedLocked() bool { return !l.lastStallLocked().IsZero() }

// loanDueLocked gives when the next loan is due as long as the jam lasts.
func (l *Limiter) loanDueLocked() time.Time {
	return l.loan.due(l.lastStallLocked(), l.settings.noProgressAfter())
}

// lendLocked lends slots if it is time, and tells whether it did.
func (l *Limiter) lendLocked(now time.Time) bool {
	if !l.jammedLocked() || now.Before(l.loanDueLocked()) {
		return false
	}
	size := max(1, min(l.loan.next(now, l.settings.noProgressAfter()), len(l.queue.arrivals)))
	l.loan = loan{size: size, at: now}
	l.lentUpTo = l.slotsLocked() + size
	return true
}

// repayLocked takes back what is lent and not used above the limit.
func (l *Limiter) repayLocked() {
	if l.lentUpTo = min(l.lentUpTo, l.slotsLocked()); l.limit <= 0 || l.lentUpTo <= l.limit {
		l.loan, l.lentUpTo = loan{}, 0
	}
}

// loansWithinLocked gives how many slots will be lent in the time d, those with them that
// are lent and free, if nothing that starts makes progress either.
func (l *Limiter) loansWithinLocked(now time.Time, d time.Duration) (starts int) {
	after := l.settings.noProgressAfter()
	var at time.Time
	switch {
	case l.jammedLocked():
		at = l.loanDueLocked()
	case l.lentUpTo > 0 && now.Sub(l.loan.at) <= 3*after:
		at = l.loan.at.Add(after)
	default:
		return 0
	}
	at = later(now, at)
	size := l.loan.next(at, after)
	for ; !at.After(now.Add(d)) && starts < len(l.queue.arrivals); at = at.Add(after) {
		starts += size
		size *= 2
	}
	return starts + max(0, l.capacityLocked()-l.slotsLocked())
}

// jammed tells whether every pod that counts against a limit on the starts of the group
// makes no progress.
func (g *group) jammed(after time.Duration) bool {
	if after <= 0 || g.waiting == 0 || g.left > 0 {
		return false
	}
	bounded := g.limits.starting.pods >= 0 || len(g.limits.given.Starting.Requests) > 0
	return bounded && g.starting.pods > 0 && g.stalledStarts == g.starting.pods ||
		g.limits.given.Pacer.Kind != "" && g.paced() > 0 && g.stalledPaced == g.paced()
}

func (g *group) loanDue(after time.Duration) time.Time { return g.loan.due(g.lastStall, after) }

// lendToGroupsLocked lends starts beyond the limits of each group that is full of pods
// without progress.
func (l *Limiter) lendToGroupsLocked(now time.Time) {
	after := l.settings.noProgressAfter()
	l.countLocked()
	for _, g := range l.groups {
		if !g.jammed(after) || now.Before(g.loanDue(after)) || !l.isHeldByStarts(g) {
			continue
		}
		g.left = min(g.loan.next(now, after), g.waiting)
		g.loan = loan{size: g.left, at: now}
	}
}

// isHeldByStarts tells whether a limit on the starts of the group holds a pod that waits.
func (l *Limiter) isHeldByStarts(g *group) bool {
	s := l.scanLocked()
	for _, t := range l.queue.arrivals {
		if t.pod == nil || t.waiters == 0 {
			continue
		}
		if h := s.holds(t); h.in != nil && h.in.group == g && (h.reason == PolicyStarting || h.reason == PolicyPacer) && !h.never() {
			return true
		}
	}
	return false
}

// lent tells whether the start of the pod passes the limits of a group by a loan.
func (p *pod) lent() bool {
	if p == nil {
		return false
	}
	for i := range p.in {
		if !p.in[i].bypass && p.in[i].group.left > 0 {
			return true
		}
	}
	return false
}

// spendLoans takes one start from what was lent to the pod's groups.
func (p *pod) spendLoans() {
	for i := range p.in {
		if g := p.in[i].group; g.left > 0 && !p.in[i].bypass {
			g.left--
		}
	}
}
