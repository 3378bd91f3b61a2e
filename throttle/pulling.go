package throttle

import "time"

// mayPullLocked tells whether the ticket, which is let up at the sandbox, finds a
// place among those that pull images. One that has stood at a container needs none.
func (l *Limiter) mayPullLocked(now time.Time, t *Ticket) (Held, bool) {
	most := l.settings.MaxPulling
	if most <= 0 || t.pulled || l.pulling.has(t) {
		return Held{}, true
	}
	l.endLongPullsLocked(now)
	free := most - l.pulling.len()
	if more := l.moreUrgentPullsLocked(t); free > 0 && more >= free {
		return Held{Reason: Queued, Measured: float64(more)}, false
	}
	if free > 0 {
		return Held{}, true
	}
	return Held{Reason: Pulling, Measured: float64(l.pulling.len()), Threshold: float64(most)}, false
}

// moreUrgentPullsLocked counts those of a higher priority than t that will be back at
// their sandbox within seconds, and then need a place to pull; without those that a
// policy holds.
func (l *Limiter) moreUrgentPullsLocked(t *Ticket) (n int) {
	for _, c := range l.classes {
		if c.held() {
			continue
		}
		for o := range c.coming.all() {
			if o.priority <= t.priority {
				break
			}
			if !o.letUp && !o.pulled {
				n++
			}
		}
	}
	return n
}

// pullLocked takes the place. Places are counted also while no limit is set.
func (l *Limiter) pullLocked(now time.Time, t *Ticket) {
	if t.pulled || l.pulling.has(t) {
		return
	}
	t.pulls = now
	l.pulling.insert(t)
}

// pulledLocked says that the ticket's images are there.
func (l *Limiter) pulledLocked(t *Ticket) {
	t.pulled = true
	l.pulling.remove(t)
}

// endLongPullsLocked gives back the places of those who pull for longer than a start
// may take: an image that cannot be pulled must not keep out all others.
func (l *Limiter) endLongPullsLocked(now time.Time) {
	for t := l.pulling.first(); t != nil && now.Sub(t.pulls) >= l.settings.startTimeout(); t = l.pulling.first() {
		l.pulling.remove(t)
	}
}
