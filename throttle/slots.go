package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lostAfter is how long a start has to have lasted to be lost when it breaks off: a probe has
// to fail several times before it kills.
const lostAfter = 10 * time.Second

// noLimit is the limit where any number may start at a time.
const noLimit = math.MaxInt

// slots are the starts under way, how many there may be, and what those that ended told.
type slots struct {
	settings  *Settings
	inFlight  []*Ticket            // Starting, by admission
	limit     int                  // starts at a time; noLimit: any number
	limitSoon int                  // what an adaptive limit may soon come to, where that is more
	found     int                  // what the adaptive limit allows; noLimit: there is none
	adaptive  *adaptive.Controller // nil: off
	planned   bool                 // by what is known of the starts under way now
	loan      loan                 // of slots
	took      durations
	lost      time.Time   // when the latest of the starts was admitted that a probe may have killed; zero: none was
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
	s.planned, s.found = false, noLimit
	if s.adaptive != nil {
		s.found = s.adaptive.Limit()
		s.setLimit(s.adaptive.Limit(), s.adaptive.Reach())
	} else {
		s.setLimit(noLimit, noLimit)
	}
}

// byKind tells whether how many may start at a time depends on which ones.
func (s *slots) byKind() bool { return s.adaptive != nil || s.settings.CountsCores() }

// setLimit sets how many may start at a time: as many as set, or as found, the less of both.
func (s *slots) setLimit(found, reach int) {
	was := s.limit
	most := s.settings.MaxConcurrent
	if most <= 0 || s.settings.CountCores {
		most = noLimit
	}
	s.limit = min(most, max(1, found))
	s.limitSoon = min(most, max(s.limit, reach))
	if s.limit != was {
		s.repay()
	}
}

// taken gives how many slots are taken.
func (s *slots) taken() int { return len(s.heldSince()) }

// capacity is how many may start at a time, with the slots that are lent.
func (s *slots) capacity() int { return max(s.limit, int(s.loan.upTo)) }

// hasOwn tells whether a slot is free that is not lent.
func (s *slots) hasOwn() bool { return s.taken() < s.limit }

// held says that every slot is taken; the zero value: one is free.
func (s *slots) held() Held {
	taken, capacity := s.taken(), s.capacity()
	if taken < capacity {
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
	s.inFlight = append(s.inFlight, t) // the last, but where it was adopted
	slices.SortStableFunc(s.inFlight, func(a, b *Ticket) int { return a.admitted.Compare(b.admitted) })
}

// giveBack gives back the slot of a start, which has ended.
func (s *slots) giveBack(t *Ticket, reason reasons.Reason, took time.Duration) {
	s.inFlight = slices.DeleteFunc(s.inFlight, func(o *Ticket) bool { return o == t })
	s.planned = false
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
	return s.loan.lend(now, s.jam(), s.settings.NoProgressAfter, waiting, float64(s.taken()), 1)
}

// repay takes back what is lent and not used.
func (s *slots) repay() { s.loan.repay(float64(s.taken()), float64(s.limit)) }

// soonLent gives how many starts loans will allow within half a minute: with the one that is
// out or due, the next two, each twice as large.
func (s *slots) soonLent() int {
	if s.loan.size == 0 && (s.settings.NoProgressAfter <= 0 || s.jam().IsZero()) {
		return 0
	}
	return 7 * max(1, s.loan.size)
}
