package demo

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slowNode is slow to remove the pods of the unpaced run.
type slowNode struct {
	*fakeNode

	clearing time.Duration
}

func (n slowNode) clear(ctx context.Context) error { return pause(ctx, n.clearing) }

func TestTheDemoKeepsItsTimeLimit(t *testing.T) {
	t.Parallel()
	for clearing, want := range map[time.Duration]struct {
		paced time.Duration // 0: no time is left for it
		whole time.Duration
	}{
		5 * time.Second:  {70 * time.Second, 145 * time.Second},
		40 * time.Second: {35 * time.Second, 145 * time.Second},
		77 * time.Second: {0, 147 * time.Second},
		time.Hour:        {0, 150 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			s := &show{
				Options: Options{Out: io.Discard}, herd: NewHerd([]int{0}), built: begin,
				node: slowNode{fakeNode: &fakeNode{begin: begin, burn: time.Hour}, clearing: clearing},
			}
			runs, err := s.bothRuns(t.Context())
			assert.InDelta(t, want.whole.Seconds(), time.Since(begin).Seconds(), 1.5, clearing)
			assert.LessOrEqual(t, time.Since(begin)+closePatience, wholeLongest, clearing)
			if want.paced == 0 {
				require.ErrorIs(t, err, errTooSlow)
				return
			}
			require.NoError(t, err)
			require.Len(t, runs, 2)
			assert.InDelta(t, want.paced.Seconds(), runs[1].Length.Seconds(), 1.5)
		})
	}
}
