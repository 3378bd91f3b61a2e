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
	repeats  int
	stalled  time.Time // since when it makes no progress; zero: it does
	pulls    time.Time // since when it has a place to pull; zero: it has none
	pulled   bool
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
	every    time.Duration // the bucket's, kept while there is no such limit; zero: there never was
	burst    float64
	filled   time.Time // when tokens was counted; zero: none was ever taken
	over     *pod      // the start above the limit
	overAll  bool
	// free are the times of the admissions that the rate limits, since it was changed.
	free    []time.Time
	signals Signals
	takes   []time.Time // all admissions that took the limits, or were exempt
	lent    int
	loanAt  time.Time // of the last loan
	loan    int       // its size; zero: none is out
	// What is known of policies, and of pods with groups, by UID.
	policies map[string]GroupLimits
	members  map[string]*modelMember
	claims   map[GroupKey]int
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
	m := &model{
		t: t, l: New(t0, s), settings: s, now: t0, at: t0, late: t0,
		happened: happened, members: map[string]*modelMember{}, claims: map[GroupKey]int{},
		trace: []string{written(s)},
	}
	m.reconfigured(s)
	return m
}

// written gives the settings for the trace, without addresses.
func written(s Settings) string {
	found := s.Adaptive
	s.Adaptive = nil
	if found == nil {
		return fmt.Sprintf("%+v", s)
	}
	return fmt.Sprintf("%+v adaptive %+v", s, *found)
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
	case min(a.repeats, 5) != min(b.repeats, 5):
		return min(a.repeats, 5) < min(b.repeats, 5)
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
	wait := 10 * time.Minute
	if m.settings.MaxWait > 0 {
		wait = m.settings.MaxWait
	}
	if e.maxWait > 0 {
		wait = min(wait, e.maxWait)
	}
	return wait
}

func (m *model) due(e *pod, at time.Time) bool { return at.Sub(e.arrived) >= m.maxWait(e) }

// have gives the tokens at the time of the operation.
func (m *model) have() float64 {
	filled := float64(max(0, m.at.Sub(m.filled))) / float64(m.every)
	return min(m.tokens+filled, m.burst)
}

// fill settles the tokens at the time of the operation, or at that of an
// earlier operation which was later.
func (m *model) fill() {
	m.tokens = m.have()
	if m.at.After(m.filled) {
		m.filled = m.at
	}
}

// most is how many may start at a time, without those lent; zero: any number. What
// the adaptive limit finds is not the model's business.
func (m *model) most() int {
	most := max(0, m.settings.MaxConcurrent)
	if m.settings.Adaptive != nil {
		if found := m.l.adaptive.Limit(); most == 0 || found < most {
			most = found
		}
	}
	return most
}

// fits tells whether every limit allows one more; margin moves the border of the
// tokens towards it.
func (m *model) fits(margin float64) bool {
	if most := m.most(); most > 0 && m.slots() >= most+m.lent {
		return false
	}
	return m.othersFit(margin)
}

// othersFit is fits without the number of starts at a time.
func (m *model) othersFit(margin float64) bool {
	if m.settings.FillEvery > 0 && m.have()+margin < 1 {
		return false
	}
	return !m.signalHolds()
}

// signalHolds knows the two limits on signals that the sequences set.
func (m *model) signalHolds() bool {
	known := func(r Reading) bool {
		return r.Err == nil && !r.To.IsZero() && m.at.Sub(r.To) <= 30*time.Second && !math.IsNaN(r.Value)
	}
	cpu, pressure := m.signals[SignalCPU], m.signals[SignalCPUPressure]
	if s := m.settings.CPU; s.Max > 0 && known(cpu) {
		value := cpu.Value
		for _, at := range m.takes {
			if at.After(cpu.From) {
				value += s.Increment
			}
		}
		if value >= s.Max {
			return true
		}
	}
	most := m.settings.Pressure.CPUSome
	return most > 0 && known(pressure) && pressure.Value >= most && known(cpu) && cpu.Value > 70
}

// take takes one token as far as there is one.
func (m *model) take() {
	m.takes = append(m.takes, m.at)
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
	most := m.most()
	if e := m.over; e != nil && (e.state != Starting || (!m.overAll && most > 0 && m.slots() <= most+m.lent)) {
		m.over = nil
	}
	return m.over == nil && (most <= 0 || m.slots() <= most+m.lent)
}

func (m *model) reconfigured(s Settings) {
	m.settings = s
	if s.FillEvery <= 0 {
		return
	}
	burst := float64(max(1, s.Burst))
	if m.every == 0 {
		m.tokens = burst
	} else {
		m.fill()
		m.tokens = min(m.tokens, burst)
	}
	if m.every != s.FillEvery || m.burst != burst {
		m.free = nil
	}
	m.every, m.burst = s.FillEvery, burst
}

// setBack moves all times with a clock that was set back.
func (m *model) setBack(d time.Duration) {
	m.at = m.now
	if m.every > 0 {
		m.fill()
	}
	times := []*time.Time{&m.filled, &m.loanAt, &m.now}
	for _, p := range m.pods {
		times = append(times, &p.arrived, &p.seen, &p.admitted, &p.stalled, &p.pulls)
	}
	for i := range m.free {
		times = append(times, &m.free[i])
	}
	for i := range m.takes {
		times = append(times, &m.takes[i])
	}
	for i := range m.signals {
		times = append(times, &m.signals[i].From, &m.signals[i].To)
	}
	for _, at := range times {
		if !at.IsZero() {
			*at = at.Add(-d)
		}
	}
	m.trace = append(m.trace, fmt.Sprintf("clock set back by %s", d))
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
