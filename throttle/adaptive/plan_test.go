package adaptive

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

var dawn = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)

// planner gives a loop on an idle node with two cores, whose herd began at dawn and which found a limit.
func planner(limit int) *Controller {
	c := New(Settings{Cores: 2})
	c.began, c.limit = dawn, limit
	return c
}

// cost is what a start takes that idles, and then burns CPU on one core: learned long ago.
func cost(idle, cpu float64) *costs.Cost {
	return &costs.Cost{
		Count: 9, Seen: dawn.Add(-time.Hour), Idle: costs.Figure{Mean: idle}, CPU: costs.Figure{Mean: cpu}, Peak: costs.Figure{Mean: 1},
	}
}

// reading is what a start takes that reads, and then burns CPU for half a second.
func reading(idle, bytes float64) *costs.Cost {
	c := cost(idle, 0.5)
	c.Disk.Mean = bytes
	return c
}

func herd(n int, s Start) []Start { return slices.Repeat([]Start{s}, n) }

// allow returns the limit of Allow alone.
func allow(c *Controller, at time.Time, underWay []Start, slots int, waiting []Start) int {
	limit, _ := c.Allow(at, underWay, slots, waiting)
	return limit
}

func allowed(c *Controller, waiting ...Start) int {
	return allow(c, dawn.Add(2*time.Second), nil, 0, waiting)
}

func TestWhatIsUnknownStartsAsFeedbackAllows(t *testing.T) {
	t.Parallel()
	c, now := planner(6), dawn.Add(9*time.Second)
	assert.Equal(t, 6, allowed(c), "nobody waits")
	two, five := herd(2, Start{Began: dawn}), herd(7, Start{Began: dawn})
	assert.Equal(t, 6, allow(c, now, two, 2, herd(20, Start{})))
	assert.NotContains(t, c.Why(), "forecast")
	assert.Equal(t, 6, allow(c, now, five, 7, herd(4, Start{})), "more than the limit are under way")
}

// Starts that idle for 15 s and then burn CPU hold others that would burn at the same moment, but none that would begin 15 s
// later. What is unknown is judged by what was measured until now.
func TestWhatIsKnownMayStartSoon(t *testing.T) {
	t.Parallel()
	c, now := planner(4), dawn.Add(time.Second)
	known := Start{Kind: "known", Patience: 25 * time.Second, Cost: cost(15, 3)}
	begun := known
	begun.Began = dawn
	underWay, waiting := herd(3, begun), herd(20, known)
	assert.Equal(t, 3, allow(c, now, underWay, 3, waiting))
	assert.Equal(t, 12, c.AllowSoon(now, 15*time.Second, underWay, 3, waiting))
	assert.Contains(t, c.Why(), "3 by the forecast", "it changes nothing")

	c = planner(40)
	unknown, waiting := herd(3, Start{Kind: "unknown", Began: dawn}), herd(20, Start{Kind: "unknown"})
	assert.Equal(t, 3, c.AllowSoon(now, 15*time.Second, unknown, 3, waiting), "none was measured yet")
}

// On a node that is full, it takes seconds until the process of a start begins, and its idle time only begins then.
func TestTheClockOfAStartStandsStillWhileItWaitsForACPU(t *testing.T) {
	t.Parallel()
	c, now := planner(4), dawn.Add(10*time.Second)
	known := Start{Kind: "known", Patience: 25 * time.Second, Cost: cost(15, 3)}
	begun := known
	begun.Began = dawn
	assert.Equal(t, 5, allow(c, now, herd(3, begun), 3, herd(9, known)), "those under way end before the next burn")
	begun.Delayed, begun.CPU = 8*time.Second, 20*time.Millisecond
	assert.Equal(t, 3, allow(c, now, herd(3, begun), 3, herd(9, known)), "those under way burn 8 s later")
	begun.Delayed, begun.Use.Cores, begun.Waited = 8*time.Second, 1, 0.99
	assert.Equal(t, 3, allow(c, now, herd(3, begun), 3, herd(9, known)), "they wait for a CPU all the time, and do not burn")
	begun.Delayed = time.Minute
	assert.Equal(t, 3, allow(c, now, herd(3, begun), 3, herd(9, known)), "several processes waited at once")
}

// The feedback takes a kind that comes for the first time to be like those before, which idle.
func TestOfAKindThatWasNotMeasuredNoMoreStartThanTheNodeBearsIfAllBurn(t *testing.T) {
	t.Parallel()
	c := planner(40)
	now := dawn.Add(10 * time.Second)
	idlers := herd(12, Start{Kind: "idler", Began: dawn})
	burner, idler := herd(20, Start{Kind: "burner"}), herd(30, Start{Kind: "idler"})
	assert.Equal(t, 15, allow(c, now, idlers, 12, burner))
	assert.Contains(t, c.Why(), "15 by the forecast of the starts: the kind of the next start is unknown, and the first of it are being measured")
	assert.Equal(t, 40, allow(c, now, idlers, 12, idler), "of a kind that was")
	assert.Equal(t, 40, allow(c, now, idlers, 12, herd(30, Start{})), "where nobody knows kinds")
	burners := herd(2, Start{Kind: "other", Began: dawn, Use: Use{Cores: 1, CPU: 5 * time.Second}})
	assert.Equal(t, 13, allow(c, now, append(burners, idlers[:10]...), 12, burner))
}

// Starts of a kind that is not known yet, and that idle, leave the cores to those whose kind is known.
func TestUnknownStartsThatIdleKeepNoCoresBusy(t *testing.T) {
	t.Parallel()
	now := dawn.Add(10 * time.Second)
	idlers := herd(12, Start{Kind: "idler", Patience: 2 * time.Minute, Began: dawn, Use: Use{CPU: 100 * time.Millisecond}})
	burners := herd(9, Start{Kind: "burner", Patience: 2 * time.Minute, Cost: cost(0, 2)})
	assert.Equal(t, 14, allow(planner(4), now, idlers, 12, burners), "two burn on two cores")
	for i := range idlers {
		idlers[i].Use, idlers[i].Began = Use{CPU: time.Second}, now.Add(-time.Second)
	}
	assert.Equal(t, 4, allow(planner(4), now, idlers, 12, burners), "not measured yet")
}

// What idles now may burn CPU later, all together.
func TestOfAnUnknownKindThatIdlesOnlyAsManyStartAsCouldBurnInTime(t *testing.T) {
	t.Parallel()
	now := dawn.Add(10 * time.Second)
	idlers := func(n int, patience time.Duration) (underWay, waiting []Start) {
		one := Start{Kind: "idler", Patience: patience}
		waiting = herd(24-n, one)
		one.Began = now.Add(-measuredAfter)
		return herd(n, one), waiting
	}
	under, waiting := idlers(5, 27*time.Second)
	c := planner(40)
	assert.Equal(t, 6, allow(c, now, under, 5, waiting), "6 burn for 0.4 of 29 s less 2 s on two cores, if each takes 3 CPU-seconds")
	assert.Contains(t, c.Why(), "those of it under way idle")
	assert.Equal(t, 9, allow(c, now.Add(10*time.Second), under, 5, waiting), "what joins 12 s later burns 12 s later")
	delayed, _ := idlers(5, 27*time.Second)
	for i := range delayed {
		delayed[i].Delayed = 10 * time.Second
	}
	assert.Equal(t, 6, allow(c, now.Add(10*time.Second), delayed, 5, waiting), "those under way waited for a CPU first")
	assert.Equal(t, 13, allow(c, now.Add(time.Hour), under, 5, waiting), "what idles for longer than its patience lives, and tells nothing")

	short, other := idlers(5, 5*time.Second)
	assert.Equal(t, 5, allow(planner(40), now, short[:1], 1, other[:4])+3, "as many as cores at least")
	long, rest := idlers(5, 2*time.Minute)
	assert.Equal(t, 40, allow(planner(40), now, long, 5, rest), "a patient probe leaves time for all")
	none, all := idlers(5, 0)
	assert.Equal(t, 40, allow(planner(40), now, none, 5, all), "no probe kills them")

	for _, busy := range []Use{{Cores: 1, CPU: time.Second}, {Reads: 50e6, Disk: 200e6}} {
		for i := range under {
			under[i].Use, under[i].Began = busy, dawn.Add(7*time.Second)
		}
		assert.Greater(t, allow(planner(12), now, under, 5, waiting), 7, "those that work show what they do")
	}
	for i := range waiting {
		waiting[i].Cost = cost(15, 0.1)
	}
	assert.Equal(t, 20, allow(planner(5), now, herd(5, Start{Kind: "idler", Began: dawn}), 5, waiting), "the forecast decides on known ones")
}

func TestAStartThatIsLateAnywayHoldsNobodyWhoDoesNotDelayIt(t *testing.T) {
	t.Parallel()
	now := dawn.Add(time.Second)
	late := herd(2, Start{Kind: "late", Cost: cost(0, 10), Patience: 11200 * time.Millisecond, Began: dawn})
	later := herd(1, Start{Kind: "later", Cost: cost(30, 1)})
	assert.Equal(t, 3, allow(planner(2), now, late, 2, later), "it burns when they are over")
	soon := herd(1, Start{Kind: "soon", Cost: cost(0, 1)})
	c := planner(2)
	assert.Equal(t, 2, allow(c, now, late, 2, soon), "it would make them later")
	soon[0].Cost = cost(0, 20)
	assert.Equal(t, 2, allow(c, now, late, 2, soon), "so would one that may wait for them")
	assert.Contains(t, c.held, "a probe would kill")
}

func TestIdlersAreChargedBeforeTheyBurn(t *testing.T) {
	t.Parallel()
	c := planner(40)
	sleeper := Start{Kind: "sleeper", Cost: cost(15, 3), Patience: 27 * time.Second}
	assert.Equal(t, 2, allowed(c, herd(24, sleeper)...), "as many as burn together after 15 s")
	assert.Contains(t, c.Why(), "2 by the forecast of the starts")
	sleeper.Began = dawn
	assert.Equal(t, 5, allow(c, dawn.Add(5*time.Second), herd(3, sleeper), 3, herd(21, Start{Kind: "sleeper", Cost: sleeper.Cost, Patience: sleeper.Patience})), "when those before will be done")
	idler := Start{Kind: "idler", Cost: cost(15, 0.01)}
	assert.Equal(t, 40, allowed(c, herd(24, idler)...), "who burns nothing waits for nobody")
}

// Who deletes the pods of a herd before the next keeps the node busy, and is done soon.
func TestStartsShareWhatOtherWorkLeavesNow(t *testing.T) {
	t.Parallel()
	burner := Start{Kind: "burner", Cost: cost(0, 3)}
	for _, of := range []struct {
		starts time.Duration // CPU time in each second, of two
		want   int
	}{{2 * time.Second, 2}, {1500 * time.Millisecond, 2}, {100 * time.Millisecond, 2}} {
		for _, samples := range []int{1, 4} { // in each second, in which the starts are measured once
			c := New(Settings{Cores: 2})
			s := Sample{At: dawn, CPU: 100, CPUKnown: true, Window: 4 * time.Second}
			c.Observe(s)
			for i := range 30 * samples {
				if i%samples == 0 {
					c.Spend(of.starts)
				}
				s.At, s.Starting = s.At.Add(time.Second/time.Duration(samples)), 1
				c.Observe(s)
			}
			assert.Equal(t, of.want, allow(c, s.At, nil, 0, herd(9, burner)), "%s of starts: %s", of.starts, c.Why())
		}
	}
}

// Refused pods come back in waves: other work that pauses goes on when a start burns that idles first.
func TestOtherWorkThatPausesIsNotOver(t *testing.T) {
	t.Parallel()
	c := New(Settings{Cores: 8})
	s := Sample{At: dawn, Window: time.Second, CPUKnown: true, Starting: 1}
	busy := func(seconds int, percent float64) {
		for range seconds {
			s.At, s.CPU = s.At.Add(time.Second), percent
			c.Spend(time.Millisecond)
			c.Observe(s)
		}
	}
	busy(40, 50)
	idler := Start{Kind: "idler", Cost: cost(15, 3), Patience: 27 * time.Second}
	before := allow(c, s.At, nil, 0, herd(40, idler))
	busy(2, 5)
	assert.Equal(t, before, allow(c, s.At, nil, 0, herd(40, idler)))
	busy(30, 5)
	assert.Greater(t, allow(c, s.At, nil, 0, herd(40, idler)), before)
}

// A start that has used a little more than those of its kind is nearly done, one that has used far more is another program.
func TestAStartThatBurnsMoreThanWasExpectedBurnsOn(t *testing.T) {
	t.Parallel()
	for used, left := range map[float64]float64{2: 1, 3.2: 0.6, 4.5: 4.5, 9: 9} {
		s := Start{Cost: cost(0, 3), Began: dawn, Use: Use{CPU: time.Duration(used * float64(time.Second)), Cores: 1}}
		assert.InDelta(t, left, planner(1).demand(s, 10).cpu, 1e-9, "%v CPU-seconds used", used)
	}
}

// Without a least, starts that get no CPU would never end.
func TestStartsGetAFifthOfANodeThatOtherWorkFills(t *testing.T) {
	t.Parallel()
	burner := Start{Kind: "burner", Cost: cost(0, 3), Patience: time.Minute}
	c := planner(1)
	c.before = 1
	assert.Equal(t, 2, allowed(c, herd(9, burner)...), "a third would wait for 15 s, of 11")
}

func TestNoStartIsKilledOrHasAnotherKilled(t *testing.T) {
	t.Parallel()
	now := dawn.Add(4 * time.Second)
	hasty := Start{Kind: "hasty", Cost: cost(0, 4), Patience: 7 * time.Second}
	assert.Equal(t, 2, allowed(planner(9), herd(9, hasty)...), "a third would take 6 s, and 5.2 s are left to it")
	hasty.Began, hasty.Use = dawn, Use{CPU: 2 * time.Second, Cores: 1}
	lazy := Start{Kind: "lazy", Cost: cost(0, 1)}
	assert.Equal(t, 2, allow(planner(9), now, herd(2, hasty), 2, herd(1, lazy)))
	hasty.Use = Use{CPU: 4 * time.Second}
	assert.Equal(t, 3, allow(planner(2), now, herd(2, hasty), 2, herd(1, lazy)), "they have burned what they burn")
}

func TestAnExpectationThatCannotBeRightIsNone(t *testing.T) {
	t.Parallel()
	c := planner(2)
	long := Start{Cost: cost(50, 1), Patience: 40 * time.Second}
	assert.Equal(t, 2, allowed(c, herd(10, long)...), "its probe would kill it alone")
	c.limit = 3
	burner := Start{Kind: "burner", Cost: cost(0, 2), Patience: 40 * time.Second}
	assert.Equal(t, 2, allowed(c, herd(10, burner)...), "a third would wait for 2 s")
}

func TestReadersShareTheDiskThatWasSeen(t *testing.T) {
	t.Parallel()
	read := reading(5, 500e6)
	reader := Start{Kind: "reader", Cost: read, Patience: 24 * time.Second}
	c := planner(40)
	now := dawn.Add(4 * time.Second)
	for seen, want := range map[float64]int{100e6: 1, 130e6: 2, 300e6: 3} {
		c.disk = disk{most: seen, stream: 40e6, waited: true}
		assert.Equal(t, want, allow(c, now, nil, 0, herd(20, reader)), "%.0f bytes a second: %s", seen, c.Why())
	}
}

// Disks are shared evenly: a start that reads delays those that read already, also those that will have read before it.
func TestAStartThatReadsDelaysNoReaderBeyondItsProbe(t *testing.T) {
	t.Parallel()
	now := dawn.Add(20 * time.Second)
	reader := Start{Kind: "reader", Cost: reading(10, 500e6), Patience: 22 * time.Second, Began: dawn, Use: Use{Disk: 400e6, Reads: 20e6}}
	loads := Start{Kind: "loads", Cost: reading(0.8, 80e6), Patience: 5 * time.Minute}
	loads.Cost.CPU.Mean = 5
	allow := func(under Start) int {
		c := planner(1)
		c.disk = disk{most: 100e6, stream: 100e6, waited: true}
		return allow(c, now, []Start{under}, 1, []Start{loads})
	}
	assert.Equal(t, 1, allow(reader), "it would read for 0.8 s in the last 2 s of one that needs 1.5 s, and burn after that")
	reader.Patience = 5 * time.Minute
	assert.Equal(t, 2, allow(reader), "there is time for both")
	loads.Cost.Disk.Mean, reader.Patience = 0, 22*time.Second
	assert.Equal(t, 2, allow(reader), "it reads nothing, and burns when the reader has ended")
}

// What was learned may be wrong: a start that has read all that was expected of it, and reads on, is not over at any moment.
func TestAStartThatReadsMoreThanWasExpectedReadsOn(t *testing.T) {
	t.Parallel()
	for read, left := range map[int64]float64{150e6: 50e6, 200e6: 0, 300e6: 100e6, 800e6: 600e6} {
		start := Start{Began: dawn, Patience: 2 * time.Minute, Use: Use{Disk: read, Reads: 50e6}}
		one, _ := planner(2).knownDemand(*reading(30, 200e6), start, 10)
		assert.InDelta(t, left, one.disk, 1e-3, "%d bytes read", read)
	}
}

// The next herd may read from other disks, or beside other work.
// A herd may stand still while another limit holds it: that is no reason to forget what disks served.
func TestWhatDisksServedIsForgottenAMinuteAfterTheHerd(t *testing.T) {
	t.Parallel()
	c := planner(2)
	sample := Sample{At: dawn, CPUKnown: true, IOPressureKnown: true, Window: time.Second, Starting: 1}
	c.Observe(sample)
	allow(c, sample.At, herd(2, Start{Began: dawn, Use: Use{Reads: 50e6}}), 2, nil)
	assert.InDelta(t, unseen*100e6, c.disk.serves(), 0)
	for sample.Starting, sample.Queued = 0, true; sample.At.Before(dawn.Add(3 * remembered)); sample.At = sample.At.Add(time.Second) {
		c.Observe(sample)
	}
	assert.InDelta(t, unseen*100e6, c.disk.serves(), 0, "another limit holds the herd")
	sample.Queued = false
	c.Observe(sample)
	assert.InDelta(t, unseen*100e6, c.disk.serves(), 0, "the herd is just over")
	sample.At = sample.At.Add(remembered)
	c.Observe(sample)
	assert.Zero(t, c.disk.serves())
}

// Readers that end together leave the disks idle for a moment. That is no reason to let three times as many read.
func TestDisksForWhichStartsWaitedServeWhatWasSeenForAWhile(t *testing.T) {
	t.Parallel()
	c := planner(2)
	sample := Sample{At: dawn, CPUKnown: true, IOPressureKnown: true, Window: time.Second, Starting: 1}
	serves := func(pressure float64) float64 {
		sample.At, sample.IOPressure = sample.At.Add(time.Second), pressure
		c.Observe(sample)
		allow(c, sample.At, herd(2, Start{Began: dawn, Use: Use{Reads: 50e6}}), 2, nil)
		return c.disk.serves()
	}
	assert.InDelta(t, unseen*100e6, serves(0), 0)
	assert.InDelta(t, 100e6, serves(90), 0)
	assert.InDelta(t, 100e6, serves(0), 0)
	sample.At = sample.At.Add(lasting)
	assert.InDelta(t, unseen*100e6, serves(0), 0, "also where something starts each minute")
}

// Others read beside those whose reading time was learned.
func TestAReaderThatWasSlowIsTakenToReadAsItsProbeLeavesItTimeFor(t *testing.T) {
	t.Parallel()
	read := reading(22, 500e6)
	reader := Start{Kind: "reader", Cost: read, Patience: 24 * time.Second}
	c := planner(40)
	allow(c, dawn, herd(1, Start{Began: dawn, Use: Use{Disk: 10e6, Reads: 10e6}}), 1, nil)
	assert.Equal(t, 1, allowed(c, herd(20, reader)...))
	assert.Contains(t, c.Why(), "1 by the forecast of the starts: with those before it, the next start would wait 6.0 s for CPUs and disks, of 5.0")
}

// A probe may kill after a second: the disk is not as fast as that would ask for.
func TestAProbeThatKillsAtOnceDoesNotMakeTheDiskFast(t *testing.T) {
	t.Parallel()
	read := reading(20, 500e6)
	for patience, want := range map[time.Duration]float64{time.Second: 25e6, 8 * time.Second: 250e6} {
		one, _ := planner(40).knownDemand(*read, Start{Patience: patience}, 0)
		assert.InDelta(t, want, one.reads, 1, patience)
	}
}

func TestMinAndMaxHoldWhateverIsKnown(t *testing.T) {
	t.Parallel()
	c := New(Settings{Cores: 2, Min: 2, Max: 4})
	c.began, c.limit = dawn, 1
	heavy := Start{Cost: cost(0, 100), Patience: time.Hour, Began: dawn}
	assert.Equal(t, 2, allow(c, dawn.Add(time.Second), herd(1, heavy), 1, herd(9, Start{Cost: cost(0, 1), Patience: time.Second})))
	assert.Equal(t, 4, allowed(c, herd(9, Start{Cost: cost(0, 0.1), Patience: time.Minute})...))
}

// A start that idles until those before it have burned delays none of them, so it need not wait for them.
func TestAStartThatIdlesForLongerThanThoseBeforeItBurnPassesThem(t *testing.T) {
	t.Parallel()
	burner := Start{Kind: "burner", Cost: cost(0, 4), Patience: 16 * time.Second}
	under := burner
	under.Began, under.Use = dawn, Use{CPU: time.Second, Cores: 1}
	sleeper := func(idle float64) Start {
		return Start{Kind: "sleeper", Cost: cost(idle, 1), Patience: 10 * time.Minute}
	}
	pass := func(waiting ...Start) (int, []int) {
		return planner(3).Allow(dawn.Add(3*time.Second), herd(3, under), 3, waiting)
	}
	// Three have 3 CPU-seconds left each, and four take 4 each: one core is free after 11 s, and one after 14 s. A sleeper
	// may wait 1.2 s.
	four := herd(4, burner)
	for _, of := range []struct {
		idle    float64
		limit   int
		passing []int
	}{{9.6, 3, nil}, {10, 4, []int{4}}, {13.1, 5, []int{4, 5}}} {
		limit, passing := pass(append(slices.Clone(four), sleeper(of.idle), sleeper(of.idle))...)
		assert.Equal(t, of.limit, limit, "%v s", of.idle)
		assert.Equal(t, of.passing, passing, "%v s", of.idle)
	}

	limit, passing := pass(append(herd(5, Start{Kind: "unknown", Patience: time.Minute}), sleeper(10.6))...)
	assert.Equal(t, 3, limit)
	assert.Empty(t, passing, "of unknown ones, each is taken to burn 3 CPU-seconds: 12 s in all")
	_, passing = pass(append(herd(5, Start{Kind: "unknown", Patience: time.Minute}), sleeper(11.1))...)
	assert.Equal(t, []int{5}, passing)

	urgent := slices.Clone(four)
	other := sleeper(60)
	other.Band = 1
	_, passing = pass(append(urgent, other)...)
	assert.Empty(t, passing, "of a later band")

	limit, passing = pass(append(slices.Clone(four), herd(20, sleeper(60))...)...)
	assert.Equal(t, 7, limit, "two burn at once, and the next two wait for 1 s")
	assert.Equal(t, []int{4, 5, 6, 7}, passing)
}

// What is learned of how long starts idle shrinks by an eighth with each start that does not, and never to zero.
func TestAStartThatIdlesForNearlyNoTimeHasAPlan(t *testing.T) {
	t.Parallel()
	for _, idle := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-12} {
		c := reading(idle, 200<<20)
		assert.Positive(t, allowed(planner(2), herd(4, Start{Kind: "reader", Cost: c, Patience: time.Minute})...), idle)
	}
}

// Most starts load some megabytes and then wait for something else. Some find all of that in the page cache.
func TestAStartThatWasMeasuredNotToReadIsNoReader(t *testing.T) {
	t.Parallel()
	c := planner(40)
	c.disk = disk{most: 100e6, stream: 100e6, waited: true}
	reads := func(want float64, elapsed time.Duration, use Use) {
		t.Helper()
		one, _ := c.knownDemand(*reading(30, 20e6), Start{Began: dawn, Patience: 2 * time.Minute, Use: use}, elapsed.Seconds())
		assert.InDelta(t, want, one.disk, 1, "%d bytes read", use.Disk)
	}
	reads(10e6, 4*time.Second, Use{Disk: 10e6, Reads: 100e3})
	for _, read := range []int64{0, 10e6, 19_999_999} {
		reads(0, 4*time.Second, Use{Disk: read})
	}
	reads(20e6, measuredAfter, Use{}) // not measured yet
}

// Where another limit is lower than the plan, those that come first keep their place: they may start like those that pass.
func TestThoseThatMayStartComeBeforeThoseThatPass(t *testing.T) {
	t.Parallel()
	waiting := append(herd(10, Start{Kind: "burns", Cost: cost(0, 4)}), herd(20, Start{Kind: "sleeps", Cost: cost(60, 1)})...)
	limit, passing := planner(2).Allow(dawn.Add(time.Second), nil, 0, waiting)
	assert.Equal(t, []int{0, 1, 10}, passing[:3])
	assert.Len(t, passing, limit)
}

func TestAStartThatOutlivedItsProbeHoldsNobody(t *testing.T) {
	t.Parallel()
	now, wide := dawn.Add(time.Minute), cost(0, 3.1)
	wide.Peak.Mean = 1.1
	hangs := Start{Kind: "hangs", Began: dawn, Patience: 30 * time.Second}
	assert.Equal(t, 3, allow(planner(1), now, []Start{hangs}, 1, herd(9, Start{Kind: "known", Cost: wide, Patience: 9 * time.Second})))
}

func TestAPodThatKeepsManyCoresBusyHidesNoQueue(t *testing.T) {
	t.Parallel()
	c, now := New(Settings{Cores: 16}), dawn.Add(100*time.Second)
	burns := Start{Kind: "burns", Began: dawn, Use: Use{CPU: 1600 * time.Second, Cores: 16}}
	most := allow(c, now, []Start{burns}, 1, herd(100, Start{Kind: "known", Cost: cost(0, 3), Patience: 20 * time.Second}))
	assert.Less(t, most, 40, "starts of three CPU-seconds on 16 cores that end in seven seconds")
}

// A start that gets its CPUs at once delays nobody, whatever the rounding of its end.
func TestAStartThatDelaysNobodyIsNotHeld(t *testing.T) {
	t.Parallel()
	now, wide := dawn.Add(25*time.Second), cost(0, 3.1)
	wide.Peak.Mean = 1.1
	late := Start{Kind: "late", Began: dawn, Patience: 30 * time.Second, Cost: cost(0, 9), Use: Use{CPU: time.Second, Cores: 1}}
	c := New(Settings{Cores: 4})
	c.began, c.limit = dawn, 1
	assert.Equal(t, 2, allow(c, now, []Start{late}, 1, []Start{{Kind: "wide", Cost: wide}}), "there are cores for both")
}
