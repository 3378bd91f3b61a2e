package throttle

import (
	"iter"
	"slices"
)

// placed is a Waiting ticket, and how many go before it.
type placed struct {
	ticket *Ticket
	ahead  int
}

// queueLocked gives all that wait, in the order of the queue. It takes O(n).
func (l *Limiter) queueLocked() []placed {
	all := make([]placed, 0, l.waitingLocked())
	for _, c := range l.classes {
		for t := range c.waiting.all() {
			all = append(all, placed{ticket: t})
		}
	}
	if len(l.classes) == 1 {
		for i := range all {
			all[i].ahead = i
		}
		return all
	}
	slices.SortFunc(all, func(a, b placed) int { return before(a.ticket, b.ticket) })
	l.countAheadLocked(all)
	return all
}

// countAheadLocked fills in what aheadLocked would give for each.
func (l *Limiter) countAheadLocked(all []placed) {
	type count struct{ passed, most int }
	counts := make(map[*class]*count, len(l.classes))
	for _, c := range l.classes {
		counts[c] = &count{most: c.mayStart()}
	}
	passed := 0 // of all classes, of each at most so many as may start now
	for i := range all {
		of := counts[all[i].ticket.class]
		all[i].ahead = passed - min(of.passed, of.most) + of.passed
		of.passed++
		if of.passed <= of.most {
			passed++
		}
	}
}

// aheadOfLocked is aheadLocked for a ticket in any state.
func (l *Limiter) aheadOfLocked(t *Ticket) int {
	if t.state != Waiting {
		return 0
	}
	return l.aheadLocked(t)
}

// inTurnLocked gives those that are present, as Turns orders them.
func (l *Limiter) inTurnLocked() iter.Seq[*Ticket] {
	if len(l.classes) == 1 {
		return l.classes[0].present.all()
	}
	var free, held []*Ticket
	for _, c := range l.classes {
		to := &free
		if c.held() {
			to = &held
		}
		*to = slices.AppendSeq(*to, c.present.all())
	}
	slices.SortFunc(free, before)
	slices.SortFunc(held, before)
	return slices.Values(append(free, held...))
}
