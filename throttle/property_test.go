package throttle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

const (
	sequences = 400
	steps     = 120
)

// TestRandomSequences plays seeded random sequences of everything that can be
// asked of a limiter, and compares each event with a model that knows the
// contract but not the code. Replay one with -run 'TestRandomSequences/seed=7$'.
func TestRandomSequences(t *testing.T) {
	happened, played := map[string]int{}, 0
	for seed := range uint64(sequences) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			first := play(t, seed, happened)
			again := play(t, seed, map[string]int{})
			require.Equal(t, first, again, "the same seed gives the same events")
			played++
		})
	}
	t.Log(happened)
	if played < sequences {
		return // some were left out with -run, or failed
	}
	for _, what := range []string{
		"Joined", "Expired/GateExpired", "Admitted/Free", "Admitted/Exempt", "Admitted/MaxWait",
		"Admitted/GateDeadline", "Admitted/Found", "Admitted/SlotLent", "Ended/Ready", "Ended/Deleted", "Ended/Stuck", "Ended/Abandoned",
		"Held/PolicyStarting", "Held/PolicyRunning", "Held/PolicyPacer", "Held/PolicyClaim", "Held/Unadmittable",
	} {
		require.Greater(t, happened[what], sequences/5, "%s: too rare for the sequences to prove much", what)
	}
}

// FuzzSequences plays sequences of other seeds.
func FuzzSequences(f *testing.F) {
	f.Add(uint64(1_000))
	f.Fuzz(func(t *testing.T, seed uint64) { play(t, seed, map[string]int{}) })
}

// player plays one sequence.
type player struct {
	*model
	rng *rand.Rand
	// policed: there are policies, from time to time.
	policed bool
}

func play(t *testing.T, seed uint64, happened map[string]int) (trace []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, seed))
	p := &player{rng: rng, model: newModel(t, randomSettings(rng), happened), policed: seed%3 == 1}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d, settings and trace:\n%s", seed, strings.Join(p.trace, "\n"))
		}
	}()
	for range steps {
		p.step()
	}
	p.drain()
	return p.trace
}

func randomSettings(r *rand.Rand) (s Settings) {
	maybe := func(from, to time.Duration) time.Duration {
		if r.IntN(3) == 0 {
			return 0
		}
		return from + time.Duration(r.Int64N(int64(to-from)))
	}
	s.MaxConcurrent = []int{0, 1, 1, 2, 2, 3, 5}[r.IntN(7)]
	s.FillEvery = maybe(200*time.Millisecond, 20*time.Second)
	s.Burst = r.IntN(5)
	s.MaxWait = maybe(5*time.Second, time.Minute)
	s.StartTimeout = maybe(5*time.Second, time.Minute)
	s.NoProgressAfter = []time.Duration{0, 2 * time.Second, 2 * time.Second, -1}[r.IntN(4)]
	s.MaxPulling = []int{0, 0, 1, 3}[r.IntN(4)]
	if r.IntN(3) == 0 {
		s.CPU = SignalLimit{Max: 80, Increment: []float64{0, 15, 100}[r.IntN(3)]}
	}
	if r.IntN(3) == 0 {
		s.Pressure.CPUSome = 60
	}
	if r.IntN(5) == 0 {
		s.Adaptive = &adaptive.Settings{Cores: 1 + r.IntN(4)}
	}
	return s
}

// randomSignals are measured over the last two seconds, some long ago, some blind.
func (p *player) randomSignals() (s Signals) {
	for _, signal := range []Signal{SignalCPU, SignalCPUPressure, SignalIOPressure} {
		r := Reading{Value: []float64{10, 50, 71, 79, 99, math.NaN()}[p.rng.IntN(6)], To: p.now}
		switch p.rng.IntN(8) {
		case 0:
			r.Err = errBlind
		case 1:
			r.To = p.now.Add(-p.randomTime(time.Minute))
		case 2:
			continue
		}
		r.From = r.To.Add(-2 * time.Second)
		s[signal] = r
	}
	return s
}

// stallSome says of one start, or of all, that it makes no progress, or that it
// does.
func (p *player) stallSome() {
	starting := p.in(Starting)
	if len(starting) == 0 {
		return
	}
	if p.rng.IntN(3) == 0 {
		p.setStalled(p.anyone(), time.Time{})
		return
	}
	for _, e := range starting {
		p.setStalled(e, p.now.Add(-p.randomTime(3*time.Second)))
	}
}

// step does one thing, sometimes with a time that is a little late.
func (p *player) step() {
	p.at, p.late = p.now, p.now
	if p.rng.IntN(10) == 0 {
		p.late = p.now.Add(-p.randomTime(5 * time.Millisecond))
	}
	if p.policed && p.rng.IntN(5) == 0 {
		p.stepPolicies()
		p.advance(p.now)
		return
	}
	switch n := p.rng.IntN(114); {
	case n < 16:
		p.join(p.randomRequest())
	case n < 34:
		p.attend(p.anyone())
	case n < 40:
		p.leave(p.anyone())
	case n < 48:
		p.tryStart(p.anyone())
	case n < 52:
		p.letUp(p.anyone())
	case n < 56:
		p.expireAll()
	case n < 68:
		p.end(p.anyone(), p.randomReason())
	case n < 70:
		p.startExempt(p.anyone())
	case n < 72:
		p.found(p.randomRequest(), p.now.Add(-p.randomTime(2*time.Minute)))
	case n < 75:
		p.setPriority(p.randomUID(), p.randomPriority(), p.randomMaxWait())
	case n < 77:
		p.configure(p.randomSettings())
	case n < 97:
		p.advance(p.now.Add(p.randomTime(8 * time.Second)))
	case n < 98:
		p.advance(p.now.Add(abandonAfter))
	case n < 99:
		p.setBack(clockTolerance + 1 + p.randomTime(time.Hour))
	case n < 104:
		p.observe(p.randomSignals())
	case n < 110:
		p.stallSome()
	case n < 112:
		p.letDown(p.anyone())
	default:
		p.followNext(1 + p.rng.IntN(5))
	}
	p.advance(p.now)
}

func (p *player) randomTime(below time.Duration) time.Duration {
	return time.Duration(p.rng.Int64N(int64(below)))
}

func (p *player) randomUID() string { return fmt.Sprintf("p%02d", p.rng.IntN(30)) }

func (p *player) randomPriority() int32 { return int32(p.rng.IntN(3)) }

func (p *player) randomMaxWait() time.Duration {
	if p.rng.IntN(2) == 0 {
		return 0
	}
	return 1 + p.randomTime(time.Minute)
}

func (p *player) randomRequest() Request {
	r := Request{UID: p.randomUID(), Priority: p.randomPriority(), MaxWait: p.randomMaxWait()}
	if p.rng.IntN(4) == 0 {
		r.Repeats = p.rng.IntN(8)
	}
	if p.rng.IntN(4) == 0 {
		r.Arrived = p.now.Add(p.randomTime(time.Minute) - 50*time.Second)
	}
	if p.policed {
		r.Groups = p.randomGroups()
	}
	return r
}

func (p *player) randomReason() Reason {
	reasons := []Reason{Ready, Settled, Inferred, Completed, Failed, CrashLoop, SandboxGone, Deleted}
	return reasons[p.rng.IntN(len(reasons))]
}

// randomSettings changes one or all.
func (p *player) randomSettings() Settings {
	s := randomSettings(p.rng)
	if p.rng.IntN(2) == 0 {
		one := p.settings
		one.MaxConcurrent = s.MaxConcurrent
		return one
	}
	return s
}

// anyone gives a ticket of any state, mostly one that has not ended.
func (p *player) anyone() *pod {
	if len(p.pods) == 0 {
		p.join(p.randomRequest())
	}
	if open := p.in(Waiting, Starting); len(open) > 0 && p.rng.IntN(10) > 0 {
		return open[p.rng.IntN(len(open))]
	}
	return p.pods[p.rng.IntN(len(p.pods))]
}

// expireAll lets the deadline come for one, or for all at once.
func (p *player) expireAll() {
	if p.rng.IntN(2) == 0 {
		p.expire(p.anyone())
		return
	}
	for _, e := range p.in(Waiting) {
		p.expire(e)
	}
}

// drain lets everybody stand there and nobody end by itself. All are admitted in
// bounded time, and then nothing is left.
func (p *player) drain() {
	p.at, p.late = p.now, p.now
	for _, e := range p.in(Waiting) {
		p.attend(e)
	}
	if p.policed {
		p.drainPolicies()
	}
	open := p.in(Waiting, Starting)
	timeout := time.Duration(len(open)+1) * p.settings.startTimeout()
	p.bound = map[*pod]time.Time{}
	for _, e := range open {
		due := e.arrived.Add(p.maxWait(e))
		if due.Before(p.now) {
			due = p.now
		}
		p.bound[e] = due.Add(timeout + readingKept)
	}
	p.followNext(20 * (len(open) + 1))
	require.Empty(p.t, p.in(Waiting, Starting), "left at the end")
	require.True(p.t, p.l.Advance(p.now).IsZero(), "nothing is left to do")
}
