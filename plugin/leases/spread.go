package leases

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	leastGap, mostGap = 100 * time.Millisecond, 2 * time.Second
	// mostContenders is the largest number of rivals that is believed.
	mostContenders = 20_000
	// doublings bounds how far the urge to take a slot grows.
	doublings = 40
)

// spread decides how long to wait before trying to take a slot that is free, so that
// of all the nodes that want it mostly one tries.
//
// All of them see at about the same time that it is free, and nobody knows how many
// they are. Each tries at a random moment, with a rate of one in contenders x gap that
// doubles with every gap for which the slot stays free. So if the number is right, it
// is taken after about one gap; and if it is n times too large, log2(n) gaps later.
// What everybody sees corrects the number: how long slots stay free.
type spread struct {
	contenders float64       // rivals believed to be, this node among them
	gap        time.Duration // how long a slot is to stay free
	// turns is how many slots others were faster to take since this node had one, and
	// rivals is who they were.
	turns  int
	rivals map[string]struct{}
	trip   time.Duration // how long a request takes
}

// newSpread begins with a guess between one and all.
func newSpread(nodes int) spread {
	return spread{contenders: max(1, float64(nodes)/10), gap: leastGap}
}

// delay draws the time until an attempt, with so many slots free, the oldest for so long.
func (s *spread) delay(r *rand.Rand, free int, age time.Duration) time.Duration {
	gap := s.gap.Seconds()
	mean := s.contenders * gap / float64(max(free, 1)) / math.Exp2(s.seniority())
	grown := math.Exp2(min(age.Seconds()/gap, doublings))
	return time.Duration(gap * math.Log2(1+r.ExpFloat64()*mean*math.Ln2/(gap*grown)) * float64(time.Second))
}

// seniority grows with the number of times that each of the others had its turn since
// this node had: it doubles the rate with which it tries, so that nobody waits for much
// longer than others. What this node believes of the number of its rivals is no measure
// of that: those of two nodes drift apart by far. The longest wait among 3, 30 and 100
// nodes in BenchmarkHerd is 3.1, 2.9 and 2.7 rounds; with half of the factor, 3.6, 3.5 and
// 4.0; with twice as much, 2.6, 2.2 and 2.0, but slots of 3 and 30 nodes idle for a tenth
// longer.
func (s *spread) seniority() float64 {
	if s.turns == 0 {
		return 0
	}
	return min(8*(float64(s.turns)/float64(len(s.rivals))-1), 16)
}

// passed notes that another was faster.
func (s *spread) passed(rival string) {
	if s.rivals == nil {
		s.rivals = map[string]struct{}{}
	}
	s.turns++
	s.rivals[rival] = struct{}{}
}

// served notes that this node has a slot.
func (s *spread) served() { s.turns, s.rivals = 0, nil }

// taken notes that somebody took a slot that was free for so long, as far as this node
// could see: it corrects the number of contenders by an eighth, as a logarithm, of what
// this one time says of it.
func (s *spread) taken(idle time.Duration) {
	gaps := max((idle-s.trip).Seconds()/s.gap.Seconds(), 0.05)
	said := math.Log(math.Ln2 / (math.Exp2(min(gaps, doublings)) - 1))
	s.set(s.contenders * math.Exp(max(said-eulerGamma, -4)/8))
}

// eulerGamma is less the mean of the logarithm of the time until something that happens
// once in a time of one.
const eulerGamma = 0.5772

// collided notes that another was faster by less than it takes to hear of it.
func (s *spread) collided() { s.set(s.contenders * 1.5) }

func (s *spread) set(contenders float64) {
	s.contenders = min(max(contenders, 1.0/16), mostContenders)
}

// measured notes how long a request took: what happened meanwhile nobody could know.
func (s *spread) measured(trip time.Duration) {
	if s.trip == 0 {
		s.trip = trip
	}
	s.trip += (trip - s.trip) / 8
	s.gap = min(max(4*s.trip, leastGap), mostGap)
}
