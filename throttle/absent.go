package throttle

import (
	"slices"
	"time"
)

// mostAbsent bounds what Absent gives, and so what it costs.
const mostAbsent = 64

// Absent gives how many starts the limits allow now though nobody who stands there
// waits for one, and the waiting tickets for which nobody stands there, in the order
// of the queue, the first 64 of them: whoever can fetch somebody, fetches for the
// first. Those that a policy holds are left out. Of limits that are no number, as those
// on signals, nobody knows how many they allow beyond the next. Where none is allowed,
// free is zero, no ticket is given, and opens is when that may change by itself; zero:
// not by time alone, or nobody waits.
func (l *Limiter) Absent(now time.Time) (free int, tickets []*Ticket, opens time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = later(now, l.latest)
	if l.waitingLocked() == l.presentLocked() {
		return 0, nil, time.Time{}
	}
	if free = l.freeLocked(now); free == 0 {
		if at, ok := l.openLocked(now, false); ok {
			opens = at
		}
		return 0, nil, opens
	}
	for _, c := range l.classes {
		tickets = append(tickets, c.absent(min(mostAbsent, c.mayStart()))...)
	}
	slices.SortFunc(tickets, before)
	tickets = tickets[:min(len(tickets), mostAbsent)]
	return free, tickets, time.Time{}
}

// freeLocked gives how many more may start now than wait where they stand.
func (l *Limiter) freeLocked(now time.Time) int {
	if _, ok := l.checkLocked(now); !ok {
		return 0
	}
	if l.slots.most <= 0 {
		return 1
	}
	return max(0, l.slots.capacity()-l.starting.len()-l.presentFreeLocked())
}

// absent gives the first of the class for which nobody stands there, so many at most.
func (c *class) absent(most int) (tickets []*Ticket) {
	for t := range c.waiting.all() {
		if len(tickets) == most {
			break
		}
		if t.attended == 0 {
			tickets = append(tickets, t)
		}
	}
	return tickets
}
