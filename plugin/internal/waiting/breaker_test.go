package waiting

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var now0 = time.Unix(1000, 0)

// loses has a container of a pod of its own come to nothing with a hook.
func (b *Breaker) loses(now time.Time, id string) string {
	b.begins(now, id, "u"+id)
	return b.Gone(now, id)
}

// Where hooks never work, ever fewer containers find that out, one at a time.
func TestTheBreakerOpensForLongerEachTimeAndOneContainerTries(t *testing.T) {
	t.Parallel()
	b := NewBreaker(0)
	now := now0
	for i, minutes := range []int{1, 2, 4, 8, 10, 10, 10} {
		id, pause := strconv.Itoa(i), time.Duration(minutes)*time.Minute
		b.begins(now, id, "u"+id)
		if i > 0 {
			assert.NotEmpty(t, b.bars(now, "other"), "another one tries")
		}
		require.Contains(t, b.Gone(now, id), "reject_oci_hook_adjustment")
		assert.Empty(t, b.Gone(now, id), "said once")
		assert.NotEmpty(t, b.bars(now.Add(pause-1), "other"), pause)
		now = now.Add(pause)
		require.Empty(t, b.bars(now, "other"), pause)
		require.NotEmpty(t, b.bars(now, "u"+id), "no pod fails twice")
		require.NotEmpty(t, b.opened(), "it is known no better")
	}
	b.begins(now, "works", "u")
	b.contact("works")
	assert.Empty(t, b.bars(now, "other"), "all is well")
	assert.Empty(t, b.opened())
	assert.NotEmpty(t, b.bars(now, "u1"))
	b.Forget("u1")
	assert.Empty(t, b.bars(now, "u1"))
}

func TestATryOfWhichNothingIsHeardMakesWayForAnother(t *testing.T) {
	t.Parallel()
	b := NewBreaker(0)
	require.NotEmpty(t, b.loses(now0, "1"))
	now := now0.Add(openFirst)
	b.begins(now, "2", "u2")
	b.connected() // what became of it was not told
	assert.NotEmpty(t, b.bars(now.Add(openFirst-1), "u3"))
	assert.Empty(t, b.bars(now.Add(openFirst), "u3"))
	assert.Empty(t, b.Gone(now, "2"))
}

func TestWhereHooksWorkOneFailureSaysNothing(t *testing.T) {
	t.Parallel()
	b := NewBreaker(0)
	b.begins(now0, "waits", "u")
	b.contact("waits")
	assert.Empty(t, b.Gone(now0, "waits"), "the end of a container that waited")
	assert.Empty(t, b.Gone(now0, "no hook"))
	assert.Empty(t, b.loses(now0, "1"))
	assert.Empty(t, b.bars(now0, "u2"))
	assert.NotEmpty(t, b.bars(now0, "u1"))
	b.contact("another")
	assert.Empty(t, b.loses(now0, "2"))
	assert.NotEmpty(t, b.loses(now0, "3"))
	assert.NotEmpty(t, b.bars(now0, "u4"))
}

// Two that come to nothing in the same moment are one failure, not two.
func TestWhatBeganBeforeTheBreakerOpenedDoesNotProlongThat(t *testing.T) {
	t.Parallel()
	b := NewBreaker(0)
	b.begins(now0, "c1", "u1")
	b.begins(now0, "c2", "u2")
	b.begins(now0, "c3", "u3")
	require.NotEmpty(t, b.Gone(now0, "c1"))
	assert.Empty(t, b.Gone(now0.Add(time.Second), "c2"))
	assert.Empty(t, b.bars(now0.Add(openFirst), "u9"))
	b.contact("c3")
	assert.Empty(t, b.bars(now0, "u9"), "a hook works after all")
}

// The host executes hooks, and none finds the daemon: in the DaemonSet, another folder of
// the host is mounted as its run directory.
func TestHooksThatDoNotFindTheDaemonOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := NewBreaker(0)
	start := func(now time.Time, id string) string {
		b.begins(now, id, "u"+id)
		return b.Started(now, id)
	}
	assert.Empty(t, b.Started(now0, "no hook"))
	assert.Contains(t, start(now0, "1"), "run directory")
	now := now0.Add(openFirst)
	require.Empty(t, b.bars(now, "u1"), "one tries again, and no container has failed")
	assert.Contains(t, start(now, "2"), "run directory")
	assert.NotEmpty(t, b.bars(now.Add(2*openFirst-1), "u9"), "for twice as long")
	b.contact("one of an earlier daemon")
	assert.Empty(t, b.bars(now, "u9"))
	assert.Empty(t, start(now, "3"), "the daemon can be found: this one has another cause")
	assert.Empty(t, b.opened())
}
