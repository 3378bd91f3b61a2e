package timeline

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func s(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// herd has a pod for each possible outcome.
func herd() Run {
	return Run{
		Name: "unpaced", Length: s(60),
		Pods: []Pod{
			{Name: "never-asked"},
			{Name: "ready", Starts: []Start{{Began: s(1), Ready: s(9)}}},
			{Name: "killed-then-ready", Starts: []Start{
				{Began: s(1), Ended: s(20), Killed: true}, {Began: s(21), Ended: s(40), Killed: true}, {Began: s(50), Ready: s(58)},
			}},
			{Name: "still-starting", Refused: 2, Starts: []Start{{Began: s(52)}}},
			{Name: "ready-then-gone", Starts: []Start{{Began: s(2), Ready: s(10), Ended: s(30)}}},
		},
		Pressure: []Pressure{{From: 0, To: s(1), Some: 1}, {From: s(1), To: s(4), Some: 0.2}},
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	r := herd()
	want := map[string][]Span{
		"never-asked": {{Waiting, 0, s(60), false}},
		"ready":       {{Waiting, 0, s(1), false}, {Starting, s(1), s(9), false}, {Ready, s(9), s(60), false}},
		"killed-then-ready": {
			{Waiting, 0, s(1), false}, {Lost, s(1), s(20), true}, {Waiting, s(20), s(21), false}, {Lost, s(21), s(40), true},
			{Waiting, s(40), s(50), false}, {Starting, s(50), s(58), false}, {Ready, s(58), s(60), false},
		},
		"still-starting": {{Waiting, 0, s(52), false}, {Starting, s(52), s(60), false}},
		"ready-then-gone": {
			{Waiting, 0, s(2), false}, {Starting, s(2), s(10), false}, {Ready, s(10), s(30), false}, {Waiting, s(30), s(60), false},
		},
	}
	for _, p := range r.Pods {
		assert.Equal(t, want[p.Name], r.Spans(p), p.Name)
	}
}

func TestStartingAtATime(t *testing.T) {
	t.Parallel()
	r := Run{Length: s(10), Pods: []Pod{
		{Starts: []Start{{Began: s(1), Ready: s(4)}}},
		{Starts: []Start{{Began: s(2), Ended: s(3)}, {Began: s(4), Ready: s(6)}}}, // begins when the first ends
		{Starts: []Start{{Began: s(8)}}},                                          // never ends
	}}
	assert.Equal(t, []Step{{0, 0}, {s(1), 1}, {s(2), 2}, {s(3), 1}, {s(4), 1}, {s(6), 0}, {s(8), 1}, {s(10), 0}}, r.StartingAtATime())
	assert.Equal(t, 2, r.Peak())
}

func TestPeakOfNothing(t *testing.T) {
	t.Parallel()
	assert.Zero(t, Run{Length: s(1), Pods: []Pod{{Name: "a"}}}.Peak())
}

func TestSummary(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Summary{
		Pods: 5, Ready: 2, Peak: 3, Kills: 2, Refused: 2,
		MeanReady: (s(60) + s(9) + s(58) + s(60) + s(60)) / 5,
		LostTime:  s(38), Pressure: 0.4, HasPressure: true,
	}, herd().Summary())
}

func TestSummaryOfAHerdThatIsReady(t *testing.T) {
	t.Parallel()
	r := Run{Length: s(9), Pods: []Pod{{Starts: []Start{{Began: s(1), Ready: s(3)}}}, {Starts: []Start{{Began: s(4), Ready: s(8)}}}}}
	assert.Equal(t, Summary{Pods: 2, Ready: 2, AllReady: s(8), MeanReady: s(5.5), Peak: 1}, r.Summary())
}

func TestUntilLeavesOutLaterEvents(t *testing.T) {
	t.Parallel()
	p := Pod{Name: "a", Refused: 1, Starts: []Start{{Began: s(1), Ended: s(5), Killed: true}, {Began: s(6), Ready: s(8)}, {Began: s(20)}}}
	assert.Equal(t, p, p.Until(s(20)))
	assert.Equal(t, Pod{Name: "a", Refused: 1, Starts: []Start{p.Starts[0], {Began: s(6)}}}, p.Until(s(7)))
	assert.Equal(t, Pod{Name: "a", Refused: 1, Starts: []Start{{Began: s(1)}}}, p.Until(s(4)))
}

// At any time, each pod does exactly one thing, and the spans add up to the figures.
func TestSpansCoverTheRunAndAgreeWithTheSteps(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		r := randomRun(random)
		steps := r.StartingAtATime()
		var area, spent time.Duration
		for i, st := range steps {
			require.GreaterOrEqual(t, st.N, 0)
			to := r.Length
			if i+1 < len(steps) {
				to = steps[i+1].At
				require.Greater(t, to, st.At)
			}
			area += time.Duration(st.N) * (to - st.At)
		}
		kills := 0
		for _, p := range r.Pods {
			at := time.Duration(0)
			for _, span := range r.Spans(p) {
				require.Equal(t, at, span.From)
				at = span.To
				if span.Kind == Starting || span.Kind == Lost {
					spent += span.To - span.From
				}
				if span.Killed {
					kills++
				}
			}
			require.Equal(t, r.Length, at)
		}
		require.Equal(t, area, spent)
		require.Equal(t, r.Summary().Kills, kills)
	}
}

func randomRun(random *rand.Rand) Run {
	r := Run{Length: s(60)}
	for range 1 + random.IntN(8) {
		p := Pod{}
		for at := time.Duration(1 + random.Int64N(int64(s(20)))); ; {
			st := Start{Began: at}
			at += time.Duration(1 + random.Int64N(int64(s(20))))
			switch random.IntN(3) {
			case 0:
				st.Ready = at
			case 1:
				st.Ended, st.Killed = at, random.IntN(2) == 0
			default:
				st.Ready = at
				at += time.Duration(1 + random.Int64N(int64(s(10))))
				st.Ended = at
			}
			p.Starts = append(p.Starts, st)
			if st.Ended == 0 || at > r.Length {
				break
			}
			at += time.Duration(random.Int64N(int64(s(10))))
		}
		r.Pods = append(r.Pods, p.Until(r.Length))
	}
	return r
}

func TestTable(t *testing.T) {
	t.Parallel()
	paced := Run{Name: "paced", Limit: 2, Length: s(61), Pods: []Pod{{Starts: []Start{{Began: s(1), Ready: s(60)}}}}}
	var text strings.Builder
	require.NoError(t, WriteTable(&text, Compare(s(48), herd(), paced)))
	assert.Equal(t, strings.TrimLeft(`
                                 unpaced            paced, 2 at a time
  ─────────────────────────────────────────────────────────────────────────────
  pods ready                     2 of 5             1 of 1
  time until all are ready       not in 60.0 s      60.0 s (1.25 x ideal)
  mean time to ready             more than 49.4 s   60.0 s
  most starts at a time          3                  1
  killed by the liveness probe   2                  0
  time spent starting in vain    38.0 s             0.0 s
  CPU pressure (PSI some)        40 %               not measured by this kernel
`, "\n"), text.String())
}
