package adaptive

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATimetableGivesEachWhatThoseBeforeItLeave(t *testing.T) {
	t.Parallel()
	type need struct{ from, work, most, end float64 }
	for name, c := range map[string]struct {
		rate  float64
		needs []need
	}{
		"nothing":                          {2, []need{{from: 3, work: 0, most: 1, end: 3}}},
		"one alone":                        {2, []need{{from: 0, work: 4, most: 1, end: 4}}},
		"one that idles, from the middle":  {2, []need{{from: 2.3, work: 4, most: 1, end: 6.3}}},
		"three on two cores":               {2, []need{{0, 4, 1, 4}, {0, 4, 1, 4}, {0, 4, 1, 8}}},
		"one with more threads than cores": {2, []need{{0, 4, 8, 2}, {0, 1, 1, 3}}},
		"one that its limit holds":         {1, []need{{0, 1, 0.25, 4}, {0, 3, 1, 4}, {0, 1, 1, 5}}},
		"one before others begin to burn":  {1, []need{{10, 4, 1, 14}, {0, 8, 1, 8}, {0, 4, 1, 16}}},
		"a rate below one":                 {0.5, []need{{0, 2, 1, 4}, {0, 1, 1, 6}}},
		"after the end":                    {1, []need{{100, 3, 1, 103}, {100, 3, 1, 103}}},
		"more than there is":               {1, []need{{0, 40, 1, 40}, {0, 40, 1, math.Inf(1)}}},
		"never":                            {1, []need{{math.Inf(1), 1, 1, math.Inf(1)}}},
	} {
		table := timetable{part: 0.25} // 64 s
		for i, n := range c.needs {
			assert.InDelta(t, n.end, table.give(n.from, n.work, n.most, c.rate), table.part, "%s: %d", name, i)
		}
	}
}

// Whatever is given, no part of the future has more than the resource serves, nobody is done sooner than alone, and all
// that is given was asked for.
func TestATimetableGivesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	const cores = 3.0
	table, asked := timetable{part: 0.7}, 0.0
	for i := range 60 {
		from, work, most := float64(i*7%11), 0.1+float64(i*5%13), 0.25+float64(i%4)/2
		asked += work
		assert.GreaterOrEqual(t, table.give(from, work, most, cores), from+work/min(cores, most)-1e-6)
	}
	given := 0.0
	for _, part := range table.given {
		assert.LessOrEqual(t, part, cores*table.part+1e-6)
		given += part
	}
	assert.InDelta(t, asked, given, 1e-6)
}
