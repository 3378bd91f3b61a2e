package throttle

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nearly is how far the model's token count may be from the limiter's.
const nearly = 1e-6

// pod is what the model knows of one ticket.
type pod struct {
	t        *Ticket
	uid      string
	priority int32
	arrived  time.Time
	maxWait  time.Duration
	number   int // in the order of joining
	attended int
	state    State
	slot     bool
	seen     time.Time
	admitted time.Time
}

// model is told what is asked of a limiter, and checks everything that happens
// against the contract.
type model struct {
	t        *testing.T
	l        *Limiter
	settings Settings
	now, at  time.Time // at is the time that counts for the operation
	late     time.Time // the time that the caller gives: at, or a little before
	pods     []*pod    // all that ever joined
	tokens   float64
	filled   time.Time // when tokens was counted; zero: none was ever taken
	over     *pod      // the start above the limit
	overAll  bool
	// free are the times of the admissions that the rate limits, since it was set.
	free []time.Time
	// bound is until when a pod has to be admitted; nil: nobody has to.
	bound map[*pod]time.Time

	asked    asked
	trace    []string
	happened map[string]int
}

// asked is the operation under way.
type asked struct {
	what    string
	of      *pod
	request Request
	since   time.Time
	reason  Reason
}

func newModel(t *testing.T, s Settings, happened map[string]int) *model {
	return &model{
		t: t, l: New(t0, s), settings: s, now: t0, at: t0, late: t0,
		tokens: float64(max(1, s.Burst)), happened: happened,
		trace: []string{fmt.Sprintf("%+v", s)},
	}
}

func (m *model) in(states ...State) (pods []*pod) {
	for _, e := range m.pods {
		if slices.Contains(states, e.state) {
			pods = append(pods, e)
		}
	}
	return pods
}

// open gives the pod's start that has not ended.
func (m *model) open(uid string) *pod {
	for _, e := range m.in(Waiting, Starting) {
		if e.uid == uid {
			return e
		}
	}
	return nil
}

func goesBefore(a, b *pod) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case !a.arrived.Equal(b.arrived):
		return a.arrived.Before(b.arrived)
	default:
		return a.number < b.number
	}
}

// queue gives the waiting pods in their order, or only those present.
func (m *model) queue(onlyPresent bool) []*pod {
	return m.sorted(func(p *pod) bool { return p.state == Waiting && (p.attended > 0 || !onlyPresent) })
}

// sorted gives the pods that are wanted in the order of the queue.
func (m *model) sorted(wanted func(*pod) bool) (pods []*pod) {
	for _, p := range m.pods {
		if wanted(p) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *pod) int {
		if goesBefore(a, b) {
			return -1
		}
		return 1
	})
	return pods
}

func (m *model) slots() (n int) {
	for _, e := range m.in(Starting) {
		if e.slot {
			n++
		}
	}
	return n
}

func (m *model) maxWait(e *pod) time.Duration {
	if e.maxWait > 0 {
		return e.maxWait
	}
	if m.settings.MaxWait > 0 {
		return m.settings.MaxWait
	}
	return 10 * time.Minute
}

func (m *model) due(e *pod, at time.Time) bool { return at.Sub(e.arrived) >= m.maxWait(e) }

// have gives the tokens at the time of the operation.
func (m *model) have() float64 {
	filled := float64(max(0, m.at.Sub(m.filled))) / float64(m.settings.FillEvery)
	return min(m.tokens+filled, float64(max(1, m.settings.Burst)))
}

// fill settles the tokens at the time of the operation, or at that of an
// earlier operation which was later.
func (m *model) fill() {
	m.tokens = m.have()
	if m.at.After(m.filled) {
		m.filled = m.at
	}
}

// fits tells whether every limit allows one more; margin moves the border of the
// tokens towards it.
func (m *model) fits(margin float64) bool {
	if most := m.settings.MaxConcurrent; most > 0 && m.slots() >= most {
		return false
	}
	return m.settings.FillEvery <= 0 || m.have()+margin >= 1
}

// take takes one token as far as there is one.
func (m *model) take() {
	if m.settings.FillEvery <= 0 {
		return
	}
	m.fill()
	if m.tokens+nearly >= 1 {
		m.tokens--
	}
}

// mayPass tells whether a deadline may put a start above the limit.
func (m *model) mayPass() bool {
	most := m.settings.MaxConcurrent
	if e := m.over; e != nil && (e.state != Starting || (!m.overAll && most > 0 && m.slots() <= most)) {
		m.over = nil
	}
	return m.over == nil && (most <= 0 || m.slots() <= most)
}

func (m *model) reconfigured(s Settings) {
	burst := float64(max(1, s.Burst))
	switch was := m.settings; {
	case s.FillEvery <= 0:
		m.tokens, m.free = 0, nil
	case was.FillEvery <= 0:
		m.tokens, m.filled, m.free = burst, time.Time{}, nil
	default:
		m.fill()
		m.tokens = min(m.tokens, burst)
		if was.FillEvery != s.FillEvery || was.Burst != s.Burst {
			m.free = nil
		}
	}
	m.settings = s
}

// admittedByRate checks every window that ends now: never more than the burst
// and what has filled.
func (m *model) admittedByRate() {
	if m.settings.FillEvery <= 0 {
		return
	}
	at := m.filled // now, or the time of an earlier operation which was later
	m.free = append(m.free, at)
	for i, from := range m.free {
		filled := float64(at.Sub(from)) / float64(m.settings.FillEvery)
		most := math.Floor(float64(max(1, m.settings.Burst)) + filled + nearly)
		require.LessOrEqual(m.t, float64(len(m.free)-i), most, "admissions since %s", from)
	}
}
