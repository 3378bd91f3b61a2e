//go:build sim

package plugin

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixedSeeds are the seeds that every run tries: some of the first, and those that ever found a fault of the daemon or of the judge.
var fixedSeeds = []uint64{1, 3, 4, 5, 6, 9, 10, 11, 16, 17, 18, 28, 36, 56, 144, 258, 312, 1006, 1075, 1089, 3244, 3400, 3419, 3423, 5041, 8010, 20000, 20003, 20004, 20005, 20012, 20019, 21004, 30086}

// TestShapes runs fixed seeds. With SHAPES_SEED, it runs that one, and writes all that was seen; with SHAPES_COUNT or
// SHAPES_MINUTES, it runs as many from there, or fresh ones, until one fails.
func TestShapes(t *testing.T) {
	seeds := fixedSeeds
	first, one := number(t, "SHAPES_SEED")
	count, many := number(t, "SHAPES_COUNT")
	minutes, timed := number(t, "SHAPES_MINUTES")
	began := time.Now()
	if one || many || timed {
		if !one {
			first = uint64(began.UnixMilli())
		}
		seeds = nil
		for i := range max(count, 1) {
			seeds = append(seeds, first+i)
		}
	}
	var lived time.Duration
	ran := 0
	try := func(seed uint64) {
		if t.Failed() && many { // one that is cut down is enough
			return
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			lived += tryShape(t, draw(seed), one && !many && !timed).last
			ran++
		})
	}
	for _, seed := range seeds {
		try(seed)
	}
	for seed := first + uint64(len(seeds)); timed && !t.Failed() && time.Since(began) < time.Duration(minutes)*time.Minute; seed++ {
		try(seed)
	}
	t.Logf("%d nodes lived %s in %s", ran, lived.Round(time.Second), time.Since(began).Round(time.Second))
}

// number returns the number in an environment variable.
func number(t *testing.T, name string) (n uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n, true
}
