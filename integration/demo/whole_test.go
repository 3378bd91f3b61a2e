package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharedNode simulates a node whose starting processes share its CPUs, of which other work leaves cpus. With a daemon,
// limit processes start at a time.
type sharedNode struct {
	*fakeNode

	cpus float64

	mu sync.Mutex
	// guarded by mu
	at    time.Time
	burns map[*sharedContainer]time.Duration // what each starting process still has to burn
	slots chan struct{}                      // nil: without a daemon
}

func newSharedNode(cpus float64, h Herd) *sharedNode {
	return &sharedNode{
		fakeNode: &fakeNode{begin: time.Now(), burn: h.Burn}, cpus: cpus, at: time.Now(), burns: map[*sharedContainer]time.Duration{},
	}
}

func (n *sharedNode) runPod(context.Context, string, string, int) (pod, error) {
	return sharedPod{n}, nil
}

func (n *sharedNode) startDaemon(_ context.Context, limit int) (func(context.Context) error, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slots = make(chan struct{}, limit)
	return func(context.Context) error { return nil }, nil
}

func (n *sharedNode) clear(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.burns)
	return nil
}

// advanceLocked lets the processes burn until now, and gives back the slots of those that have burned enough.
func (n *sharedNode) advanceLocked() {
	now := time.Now()
	each := min(1, n.cpus/max(1, float64(len(n.burns)))) * float64(now.Sub(n.at))
	n.at = now
	for c := range n.burns {
		if n.burns[c] -= time.Duration(each); n.burns[c] <= 0 {
			n.endLocked(c)
			c.ready = now
		}
	}
}

func (n *sharedNode) endLocked(c *sharedContainer) {
	if _, starting := n.burns[c]; starting && n.slots != nil {
		<-n.slots
	}
	delete(n.burns, c)
}

type sharedPod struct{ node *sharedNode }

func (p sharedPod) create(context.Context, int) (container, error) {
	return &sharedContainer{node: p.node, fakeContainer: fakeContainer{node: p.node.fakeNode}}, nil
}

type sharedContainer struct {
	fakeContainer

	node  *sharedNode
	ready time.Time // guarded by node.mu
}

func (c *sharedContainer) start(ctx context.Context) error {
	c.node.mu.Lock()
	slots := c.node.slots
	c.node.mu.Unlock()
	if slots != nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.node.advanceLocked()
	c.node.burns[c] = c.node.burn
	c.began = time.Now()
	return nil
}

func (c *sharedContainer) stop(ctx context.Context) error {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.node.advanceLocked()
	c.node.endLocked(c)
	return c.fakeContainer.stop(ctx)
}

func (c *sharedContainer) output() (string, error) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.node.advanceLocked()
	text := fmt.Sprintf("started %d\n", c.began.UnixNano())
	if !c.ready.IsZero() {
		text += fmt.Sprintf("ready %d\n", c.ready.UnixNano())
	}
	return text, nil
}

// How both runs end on nodes of which other work leaves more or less.
func TestBothRunsEndWell(t *testing.T) {
	t.Parallel()
	h := NewHerd([]int{0, 1})
	for _, c := range []struct {
		cpus                     float64
		unpaced, paced           float64 // the lengths of the runs, in seconds
		unpacedReady, pacedReady int     // pods that are ready then
	}{
		{cpus: 2, unpaced: 64, paced: 48, pacedReady: 12},
		{cpus: 1.4, unpaced: 64, paced: 69, pacedReady: 12},
		{cpus: 1.1, unpaced: 64, paced: 88, pacedReady: 12},
		{cpus: 0.5, unpaced: 64, paced: 144, pacedReady: 0},
		{cpus: 12, unpaced: 8, unpacedReady: 12, paced: 48, pacedReady: 12},
	} {
		t.Run(fmt.Sprint(c.cpus), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &show{Options: Options{Out: io.Discard}, herd: h, node: newSharedNode(c.cpus, h)}
				runs, err := s.bothRuns(t.Context())
				require.NoError(t, err)
				assert.InDelta(t, c.unpaced, runs[0].Length.Seconds(), 3)
				assert.Equal(t, c.unpacedReady, runs[0].Summary().Ready)
				assert.InDelta(t, c.paced, runs[1].Length.Seconds(), 3)
				assert.Equal(t, c.pacedReady, runs[1].Summary().Ready)
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
		assert.Equal(t, 3*ideal+clearPatience, time.Since(begin))
	})
}
