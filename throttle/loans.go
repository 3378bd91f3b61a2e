package throttle

import "time"

// loan is the last time that slots were lent.
type loan struct {
	size int // zero: none is out
	at   time.Time
}

// foreseeLoans is how far loans are foreseen: so long one who is refused now takes
// at most to come back, 15 seconds, and to stand there.
const foreseeLoans = 15*time.Second + arrivalGrace

// SetStalled says that the Starting pod has made no progress since a time, or,
// with the zero time, that it does or that nobody can tell.
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
	l.stalled.remove(t)
	t.stalled = since
	if t.slot && !since.IsZero() {
		l.stalled.insert(t)
	}
	l.admitLocked(now)
}

// jammedLocked tells whether every slot, those lent with them, is held by a start
// that makes no progress.
func (l *Limiter) jammedLocked() bool {
	return l.slots.most > 0 && l.settings.noProgressAfter() > 0 && l.starting.len() >= l.slots.capacity() &&
		l.stalled.len() > 0 && l.stalled.len() == l.starting.len()
}

// loanDueLocked gives when the next loan is due as long as the jam lasts.
func (l *Limiter) loanDueLocked() time.Time {
	after := l.settings.noProgressAfter()
	last := l.stalled.last().stalled
	if l.slots.lent == 0 {
		return last.Add(after)
	}
	return later(last.Add(after/2), l.loan.at.Add(after))
}

// nextLoanLocked gives the size of a loan made at the given time, however many
// wait.
func (l *Limiter) nextLoanLocked(at time.Time) int {
	if l.loan.size == 0 || at.Sub(l.loan.at) > 3*l.settings.noProgressAfter() {
		return 1
	}
	return 2 * l.loan.size
}

// mayLendLocked tells whether it is time for a loan.
func (l *Limiter) mayLendLocked(now time.Time) bool {
	return l.jammedLocked() && !now.Before(l.loanDueLocked())
}

// lendLocked lends slots if nothing but a jam holds the next start back, and tells
// whether it did.
func (l *Limiter) lendLocked(now time.Time) bool {
	if !l.mayLendLocked(now) {
		return false
	}
	if !l.othersAllowLocked(now) {
		return false
	}
	size := max(1, min(l.nextLoanLocked(now), l.waitingLocked()))
	l.loan = loan{size: size, at: now}
	l.slots.lent = l.starting.len() - l.slots.most + size
	return true
}

// repayLocked takes back what is lent and no longer used above the limit.
func (l *Limiter) repayLocked() {
	l.slots.lent = min(l.slots.lent, max(0, l.starting.len()-l.slots.most))
	if l.slots.most <= 0 {
		l.slots.lent = 0
	}
	if l.slots.lent == 0 {
		l.loan = loan{}
	}
}

// loansWithinLocked gives how many slots will be lent in the time d, those
// with them that are lent and free, if whoever starts makes no progress either.
func (l *Limiter) loansWithinLocked(now time.Time, d time.Duration) (starts int) {
	after := l.settings.noProgressAfter()
	var at time.Time
	switch {
	case l.jammedLocked():
		at = l.loanDueLocked()
	case l.slots.lent > 0 && now.Sub(l.loan.at) <= 3*after:
		at = l.loan.at.Add(after)
	default:
		return 0
	}
	at = later(now, at)
	size := l.nextLoanLocked(at)
	for ; !at.After(now.Add(d)) && starts < l.waitingLocked(); at = at.Add(after) {
		starts += size
		size *= 2
	}
	return starts + max(0, l.slots.capacity()-l.starting.len())
}
