package adaptive_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// plant feeds a controller with a node on which every start behaves alike, one
// sample each 250 ms. All figures are percent of the node.
type plant struct {
	*adaptive.Controller
	now  time.Time
	seen []adaptive.Sample // what was at the last moments; the window covers them
}

const sampleEvery, window = 250 * time.Millisecond, 2 * time.Second

func newPlant(s adaptive.Settings) *plant {
	return &plant{Controller: adaptive.New(s), now: time.Unix(1000, 0)}
}

// feed gives so many samples, with the limit always used and somebody waiting.
// change says how the node is at a moment; it is measured as the mean of a window.
func (p *plant) feed(samples int, change func(s *adaptive.Sample)) {
	for range samples {
		p.now = p.now.Add(sampleEvery)
		s := adaptive.Sample{
			At: p.now, Window: window, Starting: p.Limit(), Waiting: true,
			CPUKnown: true, CPUPressureKnown: true, IOPressureKnown: true,
		}
		change(&s)
		p.seen = append(p.seen, s)
		p.seen = p.seen[max(0, len(p.seen)-int(window/sampleEvery)):]
		s.CPU, s.CPUPressure, s.IOPressure = 0, 0, 0
		for _, then := range p.seen {
			n := float64(len(p.seen))
			s.CPU, s.CPUPressure, s.IOPressure = s.CPU+then.CPU/n, s.CPUPressure+then.CPUPressure/n, s.IOPressure+then.IOPressure/n
		}
		p.Observe(s)
	}
}

func TestBeginsWithWhatTheNodeLeavesOfTheGoal(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 13, adaptive.New(adaptive.Settings{Cores: 8}).Limit())
	assert.Equal(t, 3, adaptive.New(adaptive.Settings{Cores: 8, Max: 3}).Limit())
	assert.Equal(t, 20, adaptive.New(adaptive.Settings{Cores: 8, Min: 20, Max: 3}).Limit())
	assert.Equal(t, 1, adaptive.New(adaptive.Settings{}).Limit())
	p := newPlant(adaptive.Settings{Cores: 8})
	p.feed(1, func(s *adaptive.Sample) { s.Starting, s.Waiting, s.CPU = 0, false, 50 })
	assert.Equal(t, 9, p.Limit(), p.Why())
}

// However busy the node is, starts get Min, and as many CPUs as the queue of the goal has: 0.7 of 8.
func TestNeverBelowWhatIsAlwaysAllowed(t *testing.T) {
	t.Parallel()
	for _, least := range []int{0, 1, 2, 5} {
		p := newPlant(adaptive.Settings{Cores: 8, Min: least})
		p.feed(1000, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.IOPressure = 100, 100, 100 })
		assert.Equal(t, max(5, least), p.Limit(), p.Why())
	}
}

// Work behind the starts keeps the CPUs and their queues full. Only what the starts themselves wait for counts: until they
// fill the CPUs, nothing.
func TestAQueueBehindTheStartsDoesNotHoldThem(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{4, 64} {
		p := newPlant(adaptive.Settings{Cores: cores})
		p.feed(4*60, func(s *adaptive.Sample) {
			wanted := float64(s.Starting)
			s.CPU, s.CPUPressure, s.Ran = 100, 100, min(wanted, float64(cores))
			s.Waited = wanted - s.Ran
		})
		assert.InDelta(t, 1.5*float64(cores), p.Limit(), 0.3*float64(cores), p.Why())
	}
}

// Of starts that hardly run, their waiting says nothing of the CPUs.
func TestTheWaitOfStartsThatHardlyRunSaysNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 4})
	p.feed(4*60, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.Ran = 100, 100, 0.3 })
	assert.Equal(t, 3, p.Limit(), p.Why())
}

func TestStartsThatUseNothingRampUpInSeconds(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 2})
	p.feed(4*5, func(s *adaptive.Sample) { s.CPU = 8 })
	assert.GreaterOrEqual(t, p.Limit(), 100, p.Why())
}

func TestPressureOfCPULimitedPodsDoesNotCloseIt(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 4})
	p.feed(4*10, func(s *adaptive.Sample) { s.CPU, s.CPUPressure = 60, 95 })
	assert.Greater(t, p.Limit(), 16, p.Why())
}

// Processes that keep a core busy each: the limit comes to where the pressure is
// the goal, and stays.
func TestSettlesWhereThePressureIsTheGoal(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{2, 4, 16, 64} {
		p := newPlant(adaptive.Settings{Cores: cores, TargetPressure: 50})
		burning := func(s *adaptive.Sample) {
			load := float64(s.Starting) / float64(cores)
			s.CPU, s.CPUPressure = 100*min(1, load), 100*max(0, min(1, load-1))
		}
		p.feed(4*30, burning)
		assert.InDelta(t, 1.5*float64(cores), p.Limit(), 1, p.Why())
		settled := p.Limit()
		for range 100 {
			p.feed(1, burning)
			assert.Equal(t, settled, p.Limit(), p.Why())
		}
	}
}

// Starts come and go, and the sensor is noisy.
func TestStaysNearTheGoalThoughWhatIsMeasuredSwings(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{2, 8, 16} {
		random := rand.New(rand.NewPCG(uint64(cores), 1))
		p := newPlant(adaptive.Settings{Cores: cores})
		burning := func(s *adaptive.Sample) {
			load := float64(s.Starting) * (0.9 + 0.1*random.Float64()) / float64(cores)
			s.CPU, s.CPUPressure = 100*min(1, load), 100*max(0, min(1, load-1))*(0.75+0.5*random.Float64())
		}
		p.feed(4*20, burning)
		for range 4 * 300 {
			p.feed(1, burning)
			assert.InDelta(t, 1.7*float64(cores), p.Limit(), 0.15*1.7*float64(cores)+1, p.Why())
		}
	}
}

// The first seconds of a herd show the work of setting its pods up.
func TestDoesNotFallBelowWhereAHerdBeginsWhileItsPodsAreSetUp(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 8})
	p.feed(8, func(s *adaptive.Sample) { s.Starting, s.Waiting = 0, false })
	began := p.Limit()
	full := func(s *adaptive.Sample) { s.CPU, s.CPUPressure = 100, 100 }
	p.feed(4*6-1, full)
	assert.Equal(t, began, p.Limit(), p.Why())
	p.feed(4*4, full)
	assert.Less(t, p.Limit(), began, p.Why())
}

// The lasting load of a node may turn out to be less than it was when the herd began.
func TestANodeThatIsFullWhenAHerdBeginsDoesNotKeepItWaiting(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 2})
	p.feed(4*60, func(s *adaptive.Sample) { s.Starting, s.Waiting, s.CPU, s.CPUPressure = 0, false, 100, 90 })
	assert.LessOrEqual(t, p.Limit(), 2, p.Why())
	p.feed(4*20, func(s *adaptive.Sample) { s.CPU = 60 })
	assert.Greater(t, p.Limit(), 10, p.Why())
}

// Another limit held everybody, until nothing was starting: what the node shows then
// says nothing of how many starts it bears.
func TestALimitThatNothingWasMeasuredOfDoesNotFall(t *testing.T) {
	t.Parallel()
	for _, cpu := range []float64{0, 30, 100} {
		p := newPlant(adaptive.Settings{Cores: 8})
		p.feed(4*10, func(s *adaptive.Sample) { s.CPU, s.Starting, s.Waiting = cpu, 1, false })
		p.feed(4*10, func(s *adaptive.Sample) { s.CPU, s.Starting, s.Waiting = cpu, 0, false })
		before := p.Limit()
		p.feed(4, func(s *adaptive.Sample) { s.CPU, s.Starting = cpu, 0 })
		assert.Equal(t, before, p.Limit(), p.Why())
	}
}

// Of a window that is longer than what is remembered, the starts of the part that is
// count.
func TestALongWindowMakesTheStartsNoFewer(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 8})
	p.feed(4*120, func(s *adaptive.Sample) {
		s.CPU, s.CPUPressure, s.Starting, s.Window = 100, 70, 13, 10*time.Minute
	})
	assert.Contains(t, p.Why(), "with 13.0 starting")
}

func TestUnderIOPressureNoMoreStartThanMeetTheGoalByCPU(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 4})
	p.feed(4*60, func(s *adaptive.Sample) { s.CPU, s.IOPressure = 10, 100 })
	assert.Equal(t, 7, p.Limit(), "1.7 for each core: %s", p.Why())
}

func TestBlindSensors(t *testing.T) {
	t.Parallel()
	blind := newPlant(adaptive.Settings{Cores: 4})
	blind.feed(40, func(s *adaptive.Sample) {
		s.CPUKnown, s.CPUPressureKnown, s.IOPressureKnown, s.Window = false, false, false, 0
	})
	assert.Equal(t, 7, blind.Limit(), blind.Why())
	assert.Contains(t, blind.Why(), "not known")

	strange := newPlant(adaptive.Settings{Cores: 4})
	strange.feed(40, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.IOPressure = math.NaN(), -1, math.NaN() })
	assert.Equal(t, 7, strange.Limit(), strange.Why())

	noPressure := newPlant(adaptive.Settings{Cores: 4})
	noPressure.feed(4*60, func(s *adaptive.Sample) {
		s.CPUPressureKnown, s.CPU = false, min(100, 20*float64(s.Starting))
	})
	assert.InDelta(t, 5, noPressure.Limit(), 1, noPressure.Why())

	noCPU := newPlant(adaptive.Settings{Cores: 4})
	noCPU.feed(4*60, func(s *adaptive.Sample) {
		s.CPUKnown, s.CPUPressure = false, max(0, min(100, 25*float64(s.Starting-4)))
	})
	assert.InDelta(t, 6.8, noCPU.Limit(), 1, noCPU.Why())
}

func TestASampleThatIsNotLaterChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 2})
	p.feed(8, func(s *adaptive.Sample) { s.CPU = 50 })
	limit, why := p.Limit(), p.Why()
	for _, at := range []time.Duration{0, -time.Hour} {
		p.Observe(adaptive.Sample{At: p.now.Add(at), Window: window, CPUKnown: true, Waiting: true})
	}
	p.Observe(adaptive.Sample{At: p.now.Add(time.Second), CPUKnown: true, Waiting: true}) // covers no time
	assert.Equal(t, limit, p.Limit())
	assert.Equal(t, why, p.Why())
}

func TestConfigureKeepsWhatWasLearnedWithinTheNewBounds(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 2})
	p.feed(20, func(s *adaptive.Sample) { s.CPU = 8 })
	learned := p.Limit()
	p.Configure(adaptive.Settings{Cores: 2, TargetPressure: 30})
	assert.Equal(t, learned, p.Limit())
	p.Configure(adaptive.Settings{Cores: 2, Max: 10})
	assert.Equal(t, 10, p.Limit())
	p.Configure(adaptive.Settings{Cores: 2, Min: 12})
	assert.Equal(t, 12, p.Limit())
}

// Refusals take a fifth of the node: of the load of 1.0, starts make 0.8, and of the goal of 1.7, 1.5 are left to them.
func TestWhatRefusalsTakeIsNoLoadOfStarts(t *testing.T) {
	t.Parallel()
	limit := func(refusals float64) int {
		p := newPlant(adaptive.Settings{Cores: 8})
		p.feed(4*10, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.Starting, s.Refusals = 100, 0, 8, refusals })
		return p.Limit()
	}
	assert.Equal(t, 14, limit(0), "8 x 1.7 / 1.0")
	assert.Equal(t, 15, limit(20), "8 x 1.5 / 0.8")
	assert.Equal(t, limit(50), limit(1000), "an estimate of more than half of the load counts as half")
	assert.Equal(t, 14, limit(-20))
}
