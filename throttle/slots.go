package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lostAfter is how long a start must have lasted to count as killed by a probe when its containers end:
// a probe must fail several times before it kills.
const lostAfter = 10 * time.Second

// noLimit is the limit if any number may start at a time.
const noLimit = math.MaxInt

// slots are the starts under way, how many there may be, and what is known from those that ended.
type slots struct {
	settings *Settings
	inFlight []*Ticket            // Starting, by admission
	limit    int                  // starts at a time, or noLimit
	soon     int                  // what limit will be before a refused pod could be back; only if looked
	looked   bool                 // soon is up to date
	found    int                  // the adaptive limit, starts at a time, or noLimit
	adaptive *adaptive.Controller // nil if there is no adaptive limit
	planned  bool                 // limit is up to date, but for changes of groups; only if byKind
	loan     loan                 // of slots
	beyond   *Ticket              // the overdue start for which no slot was left, with the lent ones; nil if none
	took     history
	lost     time.Time   // when the latest start was admitted that a probe may have killed; zero if there was none
	scratch  []time.Time // of admittedAt
}

// configure applies the settings: it makes, changes or drops the adaptive limit. The caller makes a plan afterwards.
func (s *slots) configure() {
	switch set := s.settings.Adaptive; {
	case set == nil:
		s.adaptive = nil
	case s.adaptive == nil:
		s.adaptive = adaptive.New(*set)
	default:
		s.adaptive.Configure(*set)
	}
}

// byKind reports whether the limit depends on which pods start.
func (s *slots) byKind() bool { return s.adaptive != nil || s.settings.CountsCores() }

// most returns MaxConcurrent if it counts pods, else noLimit.
func (s *slots) most() int {
	if s.settings.MaxConcurrent <= 0 || s.settings.CountCores {
		return noLimit
	}
	return s.settings.MaxConcurrent
}

// setLimit sets the limit to MaxConcurrent or found, whichever is lower.
func (s *slots) setLimit(found int) {
	was := s.limit
	s.limit = min(s.most(), max(1, found))
	if s.limit != was {
		s.repay()
	}
}

// taken returns how many slots are taken.
func (s *slots) taken() int { return len(s.admittedAt()) }

// capacity returns how many may start at a time, with the slots that are lent.
func (s *slots) capacity() int { return max(s.limit, int(s.loan.upTo)) }

// hasUnlent reports whether a slot is free that is not lent.
func (s *slots) hasUnlent() bool { return s.taken() < s.limit }

// held returns the limit if every slot is taken, or the zero value if one is free.
func (s *slots) held() Held {
	taken, capacity := s.taken(), s.capacity()
	if taken < capacity {
		return Held{}
	}
	return Held{Reason: reasons.Concurrency, Measured: float64(taken), Threshold: float64(capacity)}
}

// admittedAt returns when the starts that hold slots were admitted. The next call overwrites the result.
func (s *slots) admittedAt() []time.Time {
	s.scratch = s.scratch[:0]
	for _, t := range s.inFlight {
		if t.slot {
			s.scratch = append(s.scratch, t.admitted)
		}
	}
	return s.scratch
}

func (s *slots) add(t *Ticket) {
	s.inFlight = append(s.inFlight, t) // the last, but where it was adopted
	slices.SortStableFunc(s.inFlight, func(a, b *Ticket) int { return a.admitted.Compare(b.admitted) })
}

// release removes a start that has ended, and learns how long it took.
func (s *slots) release(t *Ticket, reason reasons.Reason, took time.Duration) {
	s.inFlight = slices.DeleteFunc(s.inFlight, func(o *Ticket) bool { return o == t })
	s.planned = false
	if !t.slot {
		return
	}
	s.repay()
	if !t.paced() {
		return
	}
	switch reason {
	case reasons.Ready, reasons.Settled, reasons.Inferred, reasons.Completed:
		s.took.add(t.profile.Kind, t.admitted, took)
	case reasons.Exited, reasons.CrashLoop, reasons.Failed:
		if took >= lostAfter && (t.profile.Patience > 0 || t.profile.Kind == "") { // without a kind, its probes are unknown
			s.lost = later(s.lost, t.admitted)
		}
	}
}

// jam returns when the last start that holds a slot, lent ones included, stopped making progress, or zero if one makes
// progress.
func (s *slots) jam() (since time.Time) {
	if s.held().none() {
		return time.Time{}
	}
	for _, t := range s.inFlight {
		switch {
		case !t.slot:
		case t.stalledSince.IsZero():
			return time.Time{}
		default:
			since = later(since, t.stalledSince)
		}
	}
	return since
}

// goOn notes that what starts waited for may be there: a loan is due only if they still make no progress from now on.
func (s *slots) goOn(now time.Time) {
	for _, t := range s.inFlight {
		if !t.stalledSince.IsZero() {
			t.stalledSince = now
		}
	}
}

// lend lends slots, at most as many as pods wait, if a loan is due, and reports whether it did.
func (s *slots) lend(now time.Time, waiting int) bool {
	return s.loan.lend(now, s.jam(), s.settings.NoProgressAfter, waiting, float64(s.taken()), 1)
}

// lentTo returns how many pods of a flow may have the slots of starts of other flows that have made no progress for
// NoProgressAfter. So pods of one namespace that hang do not leave the others a single slot at a time. In all there are at
// most twice as many starts as the limit.
func (s *slots) lentTo(now time.Time, of *flow) int {
	after := s.settings.NoProgressAfter
	if after <= 0 || s.settings.NoFairness || s.limit == noLimit {
		return 0
	}
	free, room := s.limit, 2*s.limit
	for _, o := range s.inFlight {
		hangs := !o.stalledSince.IsZero() && now.Sub(o.stalledSince) >= after
		free -= oneIf(o.slot && (o.flow == of || !hangs))
		room -= oneIf(o.slot)
	}
	return max(0, min(free, room))
}

// repay takes back what is lent and not used. A start beyond the slots uses none that is lent: without this, it would take
// the place of each start on a loan that ends, and the next one would be beyond.
func (s *slots) repay() {
	used := s.taken()
	if slices.Contains(s.inFlight, s.beyond) {
		used--
	}
	s.loan.repay(float64(used), float64(s.limit))
}

// lentSoon returns how many starts loans allow within half a minute: the present or next loan, and two
// more, each twice as large. The next one is near when half of the time until then has passed: any start makes no progress
// for a moment.
func (s *slots) lentSoon(now time.Time) int {
	after, jam := s.settings.NoProgressAfter, s.jam()
	if s.loan.size == 0 && (after <= 0 || jam.IsZero() || now.Sub(jam) < after/2) {
		return 0
	}
	if s.loan.helped {
		return 7
	}
	return 7 * max(1, s.loan.size)
}
