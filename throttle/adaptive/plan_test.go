package adaptive

import (
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

// proven is a cost of which a start of this herd was.
func proven(c *costs.Cost) *costs.Cost {
	c.Seen = dawn.Add(time.Second)
	return c
}

func herd(n int, s Start) []Start { return slices.Repeat([]Start{s}, n) }

func allowed(c *Controller, present ...Start) int {
	return c.Allow(dawn.Add(2*time.Second), nil, 0, present, present)
}

func TestWhatIsUnknownStartsAsFeedbackAllows(t *testing.T) {
	t.Parallel()
	c := planner(3)
	assert.Equal(t, 3, allowed(c), "nobody waits")
	assert.Equal(t, 3, allowed(c, herd(20, Start{})...))
	assert.NotContains(t, c.Why(), "known")
	began := dawn.Add(time.Second)
	five := herd(5, Start{Began: began})
	assert.Equal(t, 3, c.Allow(dawn.Add(9*time.Second), five, 5, herd(4, Start{}), nil), "more than the limit are under way")
}

// The feedback takes a kind that comes for the first time to be like those before, which idle.
func TestOfAKindThatWasNotMeasuredNoMoreStartThanTheNodeBearsIfAllBurn(t *testing.T) {
	t.Parallel()
	c := planner(40)
	now := dawn.Add(10 * time.Second)
	idlers := herd(12, Start{Kind: "idler", Began: dawn})
	assert.Equal(t, 15, c.Allow(now, idlers, 12, herd(20, Start{Kind: "burner"}), herd(20, Start{Kind: "burner"})))
	assert.Equal(t, 40, c.Allow(now, idlers, 12, herd(30, Start{Kind: "idler"}), herd(30, Start{Kind: "idler"})), "of a kind that was")
	burners := herd(2, Start{Kind: "other", Began: dawn, Use: Use{Cores: 1, CPU: 5 * time.Second}})
	assert.Equal(t, 13, c.Allow(now, append(burners, idlers[:10]...), 12, herd(20, Start{Kind: "burner"}), herd(20, Start{Kind: "burner"})))
}

func TestIdlersAreChargedBeforeTheyBurn(t *testing.T) {
	t.Parallel()
	c := planner(40)
	sleeper := Start{Kind: "sleeper", Expected: cost(15, 3), Patience: 27 * time.Second}
	assert.Equal(t, 3, allowed(c, herd(24, sleeper)...), "as many as burn together after 15 s")
	assert.Contains(t, c.Why(), "3 by what is known of the starts")
	sleeper.Began = dawn
	assert.Equal(t, 6, c.Allow(dawn.Add(5*time.Second), herd(3, sleeper), 3, herd(21, Start{Kind: "sleeper", Expected: sleeper.Expected, Patience: sleeper.Patience}),
		herd(21, Start{Expected: sleeper.Expected})), "when those before will be done")
	idler := Start{Kind: "idler", Expected: proven(cost(15, 0.01))}
	assert.Equal(t, 24, allowed(c, herd(24, idler)...), "who burns nothing waits for nobody")
}

func TestNobodyStartsWhomOrThroughWhomAProbeWouldKill(t *testing.T) {
	t.Parallel()
	now := dawn.Add(4 * time.Second)
	hasty := Start{Kind: "hasty", Expected: proven(cost(0, 4)), Patience: 7 * time.Second}
	assert.Equal(t, 2, allowed(planner(9), herd(9, hasty)...), "a third would take 6 s, and 5.8 s are left to it")
	hasty.Began, hasty.Use = dawn, Use{CPU: 2 * time.Second, Cores: 1}
	lazy := Start{Kind: "lazy", Expected: proven(cost(0, 1))}
	assert.Equal(t, 2, planner(9).Allow(now, herd(2, hasty), 2, herd(1, lazy), herd(1, lazy)))
	hasty.Use = Use{CPU: 4 * time.Second}
	assert.Equal(t, 3, planner(9).Allow(now, herd(2, hasty), 2, herd(1, lazy), herd(1, lazy)), "they have burned what they burn")
}

func TestAllThatAreLeftAreLetInOnceTheirKindIsProven(t *testing.T) {
	t.Parallel()
	burner := Start{Kind: "burner", Expected: cost(0, 2), Patience: 40 * time.Second}
	assert.Equal(t, 3, allowed(planner(3), herd(10, burner)...))
	burner.Expected = proven(burner.Expected)
	assert.Equal(t, 10, allowed(planner(3), herd(10, burner)...), "10 s of work, and nobody may take more than 24.8 s")
	assert.Equal(t, 3, allowed(planner(3), append(herd(10, burner), Start{})...), "one is unknown")
	assert.Equal(t, 3, allowed(planner(3), herd(30, burner)...), "30 s of work")
}

func TestAnExpectationThatCannotBeRightIsNone(t *testing.T) {
	t.Parallel()
	c := planner(2)
	long := Start{Expected: cost(50, 1), Patience: 40 * time.Second}
	assert.Equal(t, 2, allowed(c, herd(10, long)...), "its probe would kill it alone")
	burner := Start{Expected: proven(cost(0, 2)), Patience: 40 * time.Second}
	c.loss.most = 2
	assert.Equal(t, 2, allowed(c, herd(10, burner)...), "after a loss nothing is believed")
	c.loss.most = 0
	assert.Equal(t, 10, allowed(c, herd(10, burner)...))
	c.crowded = true
	assert.Equal(t, 1, allowed(c, herd(30, burner)...), "the node is fuller than was expected")
}

func TestReadersShareTheDiskThatWasSeen(t *testing.T) {
	t.Parallel()
	read := cost(5, 0.5)
	read.Disk.Mean = 500e6
	reader := Start{Kind: "reader", Expected: read, Patience: 24 * time.Second}
	c := planner(40)
	assert.Equal(t, 1, allowed(c, herd(20, reader)...), "half a reader for each core, where nothing was seen")
	at := dawn.Add(2 * time.Second)
	began := herd(4, Start{Kind: "reader", Expected: read, Patience: 24 * time.Second, Began: dawn, Use: Use{Disk: 200e6, Reads: 100e6}})
	c.Allow(at, began, 4, nil, nil)
	at = at.Add(4 * time.Second)
	for i := range began {
		began[i].Disk = 400e6
	}
	assert.Equal(t, 6, c.Allow(at, began, 4, herd(20, reader), herd(20, reader)), "1.7 times what it was seen to do")
}

func TestMinAndMaxHoldWhateverIsKnown(t *testing.T) {
	t.Parallel()
	c := New(Settings{Cores: 2, Min: 2, Max: 4})
	c.began, c.limit = dawn, 1
	heavy := Start{Expected: cost(0, 100), Patience: time.Hour, Began: dawn}
	assert.Equal(t, 2, c.Allow(dawn.Add(time.Second), herd(1, heavy), 1, herd(9, Start{Expected: cost(0, 1), Patience: time.Second}), nil))
	assert.Equal(t, 4, allowed(c, herd(9, Start{Expected: proven(cost(0, 0.1))})...))
}
