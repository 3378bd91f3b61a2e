package throttle

import "time"

// clockTolerance is by how much the time of Advance may be before that of another
// call without the clock having been set back.
const clockTolerance = 10 * time.Second

// clockLocked gives the time of a decision: now, but never before that of an
// earlier decision. Two callers may read the clock in one order and get the lock in
// the other.
func (l *Limiter) clockLocked(now time.Time) time.Time {
	l.latest = later(l.latest, now)
	return l.latest
}

// setBackLocked takes all times along with a clock that was set back, so that
// everything is as old as it was. Without that, time would stand still until the
// clock is where it was.
func (l *Limiter) setBackLocked(now time.Time) {
	back := l.latest.Sub(now)
	if back <= clockTolerance {
		return
	}
	if l.bucket != nil {
		l.bucket.SetLimitAt(l.latest, l.bucket.Limit()) // fills what has filled
		l.bucket.SetLimitAt(now, l.bucket.Limit())
	}
	l.shiftLocked(-back)
	l.latest = now
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shiftLocked moves all times by d. It changes no order.
func (l *Limiter) shiftLocked(d time.Duration) {
	moved := []*order{&l.starting, &l.unheld}
	for _, c := range l.classes {
		moved = append(moved, &c.waiting)
	}
	for _, set := range moved {
		for t := range set.all() {
			t.shift(d)
		}
	}
	shift(&l.loan.at, d)
	shift(&l.crowded, d)
	shift(&l.came, d)
	shift(&l.tally.lost, d)
	for i := range l.signals {
		shift(&l.signals[i].From, d)
		shift(&l.signals[i].To, d)
	}
	for _, took := range []*takes{&l.takes, &l.paced} {
		for i := range took.times {
			shift(&took.times[i], d)
		}
	}
	if l.adaptive != nil {
		l.adaptive.Shift(d)
	}
	if l.learned.from != nil {
		l.learned.from.Shift(d)
		shift(&l.learned.until, d)
	}
}

func (t *Ticket) shift(d time.Duration) {
	for _, at := range []*time.Time{&t.arrived, &t.seen, &t.asked, &t.comes, &t.pulls, &t.due, &t.admitted, &t.stalled} {
		shift(at, d)
	}
}

// shift moves a time that is set.
func shift(at *time.Time, d time.Duration) {
	if !at.IsZero() {
		*at = at.Add(d)
	}
}
