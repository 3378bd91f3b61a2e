package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run ends once all pods are ready, or when it is plain that they do not get ready. The second has a daemon.
func TestBothRunsEnd(t *testing.T) {
	t.Parallel()
	h := NewHerd([]int{0, 1})
	for name, c := range map[string]struct {
		burn   time.Duration
		length float64 // of each run, in seconds
		ready  int
	}{"all ready": {h.Burn, h.Burn.Seconds(), h.Pods}, "hopeless": {time.Hour, 64, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNode{begin: time.Now(), burn: c.burn}
				s := &show{Options: Options{Out: io.Discard}, herd: h, node: n}
				runs, err := s.bothRuns(t.Context())
				require.NoError(t, err)
				for _, run := range runs {
					assert.InDelta(t, c.length, run.Length.Seconds(), 3)
					assert.Equal(t, c.ready, run.Summary().Ready)
				}
				began := runs[0].Length.Truncate(time.Second).Seconds()
				assert.Equal(t, 1, strings.Count(strings.Join(n.log, "\n"), fmt.Sprintf("%.0fs daemon %d", began, h.Limit)), "between the runs")
			})
		})
	}
}

// stuckNode never starts a process.
type stuckNode struct{ *fakeNode }

func (n stuckNode) runPod(ctx context.Context, _, _ string, _ int) (pod, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (n stuckNode) clear(ctx context.Context) error { return pause(ctx, time.Hour) }

func TestARunEndsAfterThreeTimesTheIdeal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := &show{Options: Options{Out: &out}, herd: NewHerd([]int{0}), node: stuckNode{&fakeNode{}}}
		run, err := s.run(t.Context(), "unpaced", 0)
		require.NoError(t, err)
		assert.Equal(t, 3*ideal, run.Length)
		assert.Contains(t, out.String(), "s of at most 144 s: 12 waiting")
	})
}

func TestPodsThatCannotBeRemovedEndTheDemo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := &show{Options: Options{Out: io.Discard}, herd: NewHerd([]int{0}), node: stuckNode{&fakeNode{}}}
		_, err := s.bothRuns(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3*ideal+clearTimeout, time.Since(begin))
	})
}
