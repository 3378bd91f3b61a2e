package throttle

import "time"

// mostAbsent bounds what Absent gives, and so what it costs.
const mostAbsent = 64

// Absent gives how many starts the limits allow now though nobody who stands there
// waits for one, and the waiting tickets for which nobody stands there, in the order
// of the queue, the first 64 of them: whoever can fetch somebody, fetches for the
// first. Of limits that are no number, as those on signals, nobody knows how many
// they allow beyond the next. Where none is allowed, free is zero, no ticket is
// given, and opens is when that may change by itself; zero: not by time alone, or
// nobody waits.
func (l *Limiter) Absent(now time.Time) (free int, tickets []*Ticket, opens time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = later(now, l.latest)
	if l.waiting.len() == l.present.len() {
		return 0, nil, time.Time{}
	}
	if free = l.freeLocked(now); free == 0 {
		if at, ok := l.openLocked(now, false); ok {
			opens = at
		}
		return 0, nil, opens
	}
	for t := range l.waiting.all() {
		if t.attended > 0 {
			continue
		}
		if tickets = append(tickets, t); len(tickets) == mostAbsent {
			break
		}
	}
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
	return max(0, l.slots.capacity()-l.starting.len()-l.present.len())
}
