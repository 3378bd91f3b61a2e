package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lostAfter is how long a start has to have lasted to be lost when it breaks off: a probe has
// to fail several times before it kills.
const lostAfter = 10 * time.Second

// slots are the starts under way, how many there may be, and what those that ended told.
type slots struct {
	settings  *Settings
	inFlight  []*Ticket            // Starting, by admission
	limit     int                  // starts at a time; zero: any number
	limitSoon int                  // what an adaptive limit may soon come to, where that is more
	adaptive  *adaptive.Controller // nil: off
	loan      loan
	lentUpTo  int // starts at a time while a loan is out
	took      durations
	lost      time.Time   // when the last admitted of the starts that a probe may have killed was; zero: none was
	since     []time.Time // scratch of heldSince
}

// configure follows the settings: it makes, changes or drops the adaptive limit.
func (s *slots) configure() {
	switch set := s.settings.Adaptive; {
	case set == nil:
		s.adaptive = nil
	case s.adaptive == nil:
		s.adaptive = adaptive.New(*set)
	default:
		s.adaptive.Configure(*set)
	}
	s.setLimit()
}

// setLimit sets how many may start at a time: as many as set, or as found, the less of both.
func (s *slots) setLimit() {
	was := s.limit
	s.limit = max(0, s.settings.MaxConcurrent)
	s.limitSoon = s.limit
	if s.adaptive != nil {
		found, reach := max(1, s.adaptive.Limit()), s.adaptive.Reach()
		if s.limit > 0 {
			found, reach = min(found, s.limit), min(reach, s.limit)
		}
		s.limit, s.limitSoon = found, max(found, reach)
	}
	if s.limit != was {
		s.repay()
	}
}

// taken gives how many slots are taken.
func (s *slots) taken() int { return len(s.heldSince()) }

// capacity is how many may start at a time, with the slots that are lent.
func (s *slots) capacity() int { return max(s.limit, s.lentUpTo) }

// hasOwn tells whether a slot is free that is not lent.
func (s *slots) hasOwn() bool { return s.limit <= 0 || s.taken() < s.limit }

// held says that every slot is taken; the zero value: one is free.
func (s *slots) held() Held {
	taken, capacity := s.taken(), s.capacity()
	if s.limit <= 0 || taken < capacity {
		return Held{}
	}
	return Held{Reason: reasons.Concurrency, Measured: float64(taken), Threshold: float64(capacity)}
}

// heldSince gives since when slots are held.
func (s *slots) heldSince() []time.Time {
	s.since = s.since[:0]
	for _, t := range s.inFlight {
		if t.slot {
			s.since = append(s.since, t.admitted)
		}
	}
	return s.since
}

func (s *slots) add(t *Ticket) {
	i := len(s.inFlight)
	for i > 0 && s.inFlight[i-1].admitted.After(t.admitted) { // one that was adopted
		i--
	}
	s.inFlight = slices.Insert(s.inFlight, i, t)
}

// giveBack gives back the slot of a start, which has ended.
func (s *slots) giveBack(t *Ticket, reason reasons.Reason, took time.Duration) {
	s.inFlight = slices.DeleteFunc(s.inFlight, func(o *Ticket) bool { return o == t })
	if !t.slot {
		return
	}
	s.repay()
	if t.admission == reasons.Adopted || t.admission == reasons.Exempt {
		return // since when, nobody knows; nor is it like those that wait
	}
	switch {
	case tellsPace(reason):
		s.took.add(took)
	case breaksOff(reason) && took >= lostAfter:
		s.lost = later(s.lost, t.admitted)
	}
}

// jam gives since when every slot, those lent with them, has been held by a start that makes
// no progress; zero: not all are.
func (s *slots) jam() (since time.Time) {
	if s.held().none() {
		return time.Time{}
	}
	for _, t := range s.inFlight {
		if t.slot && t.stalled.IsZero() {
			return time.Time{}
		}
		if t.slot {
			since = later(since, t.stalled)
		}
	}
	return since
}

// lend lends slots, as many as wait at most, if it is time, and tells whether it did.
func (s *slots) lend(now time.Time, waiting int) bool {
	if !s.loan.lend(now, s.jam(), s.settings.NoProgressAfter, waiting) {
		return false
	}
	s.lentUpTo = s.taken() + s.loan.size
	return true
}

// repay takes back what is lent and not used above the limit.
func (s *slots) repay() {
	if s.lentUpTo = min(s.lentUpTo, s.taken()); s.limit <= 0 || s.lentUpTo <= s.limit {
		s.loan, s.lentUpTo = loan{}, 0
	}
}

// soonLent gives how many starts loans will allow within half a minute: with the one that is
// out or due, the next two, each twice as large.
func (s *slots) soonLent() int {
	if s.loan.size == 0 && (s.settings.NoProgressAfter <= 0 || s.jam().IsZero()) {
		return 0
	}
	return 7 * max(1, s.loan.size)
}
