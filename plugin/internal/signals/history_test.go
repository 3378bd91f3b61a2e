package signals

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// clock makes samples of one pressure signal at times that a test chooses. The times have no monotonic reading, like
// a wall clock that can be set.
type clock struct {
	h      history
	zero   time.Time
	passed time.Duration
	stall  float64
}

func newClock(window time.Duration) *clock {
	return &clock{h: history{window: window}, zero: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

const watched = throttle.SignalIOPressure

// after takes a sample after d, in which tasks stalled for the given percentage of the time.
func (c *clock) after(d time.Duration, percent float64) throttle.Reading {
	c.passed += d
	c.stall += d.Seconds() * percent / 100
	return c.add(nil)
}

func (c *clock) add(err error) throttle.Reading {
	m := moment{at: c.zero.Add(c.passed)}
	m.counters[watched] = counter{used: c.stall, total: c.passed.Seconds(), err: err}
	return c.h.add(m)[watched]
}

func span(r throttle.Reading) time.Duration { return r.To.Sub(r.From) }

func TestAReadingSpansTheWindow(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	assert.Equal(t, throttle.Reading{}, c.after(0, 0), "the first sample has no earlier one to compare with")
	for i := 1; i <= 40; i++ {
		r := c.after(250*time.Millisecond, 40)
		require.NoError(t, r.Err)
		assert.InDelta(t, 40, r.Value, 1e-9)
		assert.Equal(t, min(2*time.Second, time.Duration(i)*250*time.Millisecond), span(r), "sample %d", i)
	}
	// Samples from before the window are forgotten.
	for range 8 {
		c.after(250*time.Millisecond, 90)
	}
	assert.InDelta(t, 90, c.after(250*time.Millisecond, 90).Value, 1e-9)
}

func TestSamplesAtAnyPaceSpanTheWindow(t *testing.T) {
	t.Parallel()
	for _, pace := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 199 * time.Millisecond, 251 * time.Millisecond, time.Second, 3 * time.Second} {
		c := newClock(2 * time.Second)
		for range 5000 {
			c.after(pace, 10)
		}
		r := c.after(pace, 10)
		assert.GreaterOrEqual(t, span(r), 2*time.Second, "every %s", pace)
		assert.LessOrEqual(t, span(r), max(2400*time.Millisecond, 2*pace), "every %s", pace)
	}
}

func TestReadingsBeginAgainAfterAnIdleTime(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	for range 3 {
		c.after(10*time.Second, 5)
	}
	r := c.after(7*time.Second, 5)
	assert.Equal(t, 7*time.Second, span(r), "the reading begins at the last idle sample")
	assert.InDelta(t, 5, r.Value, 1e-9)
	for i := 1; i <= 8; i++ {
		r = c.after(250*time.Millisecond, 100)
		assert.Equal(t, time.Duration(i)*250*time.Millisecond, span(r))
		assert.InDelta(t, 100, r.Value, 1e-9, "the reading leaves out the idle time")
	}
}

func TestAVeryOldSampleIsNotUsed(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	c.after(0, 0)
	assert.Equal(t, 2*time.Minute, span(c.after(2*time.Minute, 7)))
	assert.Equal(t, throttle.Reading{}, c.after(2*time.Minute+time.Nanosecond, 7))
	c = newClock(5 * time.Minute)
	c.after(0, 0)
	assert.Equal(t, 10*time.Minute, span(c.after(10*time.Minute, 7)), "an old sample counts if the window is long")
}

func TestAReadingIsNeverShort(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	c.after(0, 0)
	assert.Equal(t, throttle.Reading{}, c.after(99*time.Millisecond, 50))
	assert.Equal(t, 100*time.Millisecond, span(c.after(time.Millisecond, 50)))
}

func TestABlindSignalRecoversWithTheSecondGoodSample(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	for range 20 {
		c.after(250*time.Millisecond, 30)
	}
	c.passed += 250 * time.Millisecond
	require.ErrorIs(t, c.add(ErrAbsent).Err, ErrAbsent)
	// Earlier samples still count if they are near enough.
	r := c.after(250*time.Millisecond, 30)
	require.NoError(t, r.Err)
	assert.Equal(t, 2*time.Second, span(r))
	for range 20 {
		c.passed += 250 * time.Millisecond
		require.Error(t, c.add(ErrParse).Err)
	}
	assert.Equal(t, throttle.Reading{}, func() throttle.Reading {
		c := newClock(2 * time.Second)
		c.add(ErrAbsent)
		return c.after(250*time.Millisecond, 30)
	}(), "the first good sample has no earlier one to compare with")
}

func TestACounterThatGoesBackwardsGivesNoReading(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	for range 20 {
		c.after(250*time.Millisecond, 30)
	}
	c.stall = 0.001
	c.passed += 250 * time.Millisecond
	r := c.add(nil)
	require.ErrorIs(t, r.Err, ErrCounter)
	require.ErrorContains(t, r.Err, "pressure.io.some")
	r = c.after(250*time.Millisecond, 60)
	require.NoError(t, r.Err)
	assert.InDelta(t, 60, r.Value, 1e-9)
	assert.Equal(t, 250*time.Millisecond, span(r), "the reading begins at the sample that went back")
}

func TestASignalIsBlindWhileTheClockStandsStill(t *testing.T) {
	t.Parallel()
	c := newClock(2 * time.Second)
	c.after(0, 0)
	for range 5 {
		c.zero = c.zero.Add(250 * time.Millisecond) // and the counters do not change
		require.ErrorIs(t, c.add(nil).Err, ErrCounter)
	}
	require.NoError(t, c.after(250*time.Millisecond, 10).Err)
}

func TestAChangeOfTheWallClockGivesNoNonsense(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-time.Hour, -time.Second, time.Second, 24 * time.Hour} {
		c := newClock(2 * time.Second)
		for range 20 {
			c.after(250*time.Millisecond, 50)
		}
		c.zero = c.zero.Add(jump) // the counters' own clock continues
		for range 40 {
			r := c.after(250*time.Millisecond, 50)
			require.NoError(t, r.Err, jump)
			if !r.To.IsZero() {
				assert.InDelta(t, 50, r.Value, 1e-9, jump)
			}
		}
		r := c.after(250*time.Millisecond, 50)
		assert.InDelta(t, 2, span(r).Seconds(), 0.3, "%s: the window is whole again", jump)
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since, now counter
		signal     throttle.Signal
		want       float64
		err        error
	}{
		"half":                {counter{used: 1, total: 10}, counter{used: 2, total: 12}, throttle.SignalCPU, 50, nil},
		"a little over all":   {counter{used: 1, total: 10}, counter{used: 3.1, total: 12}, throttle.SignalIOFull, 100, nil},
		"iowait may decrease": {counter{used: 5, total: 10}, counter{used: 4, total: 12}, throttle.SignalIOWait, 0, nil},
		"rounding":            {counter{used: 5, total: 10}, counter{used: 5 - 1e-9, total: 12}, throttle.SignalCPU, 0, nil},
		"backwards":           {counter{used: 5, total: 10}, counter{used: 4, total: 12}, throttle.SignalCPU, 0, ErrCounter},
		"its clock stands":    {counter{used: 5, total: 10}, counter{used: 5, total: 10}, throttle.SignalCPU, 0, ErrCounter},
		"its clock goes back": {counter{used: 5, total: 10}, counter{used: 6, total: 9}, throttle.SignalIOWait, 0, ErrCounter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.now.share(c.since, c.signal)
			require.ErrorIs(t, err, c.err)
			assert.InDelta(t, c.want, got, 1e-6)
		})
	}
}

func TestAReadingOfTheCPUSaysWhatRefusalsTook(t *testing.T) {
	t.Parallel()
	h := history{window: 2 * time.Second}
	var readings throttle.Signals
	for second := range 4 { // of two CPUs; each second refusals take half of one
		m := moment{at: time.Unix(int64(second), 0), refused: time.Duration(second) * time.Second / 2}
		for _, signal := range []throttle.Signal{throttle.SignalCPU, watched} {
			m.counters[signal] = counter{used: float64(second), total: 2 * float64(second)}
		}
		readings = h.add(m)
	}
	assert.InDelta(t, 25, readings[throttle.SignalCPU].Refusals, 1e-9)
	assert.Zero(t, readings[watched].Refusals)
}
