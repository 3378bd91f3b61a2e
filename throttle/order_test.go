package throttle

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzOrder compares a set with a sorted slice. Each byte inserts or removes one of
// 64 tickets, so that both happen to those that are in the set and those that are
// not.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 128, 1, 130})
	rng := rand.New(rand.NewPCG(1, 2))
	long := make([]byte, 500)
	for i := range long {
		long[i] = byte(rng.IntN(256))
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, ops []byte) {
		l := New(t0, Settings{})
		var tickets []*Ticket
		for i := range 64 {
			tickets = append(tickets, &Ticket{seq: uint64(i), priority: int32(i % 5), arrived: t0.Add(time.Duration(i%7) * time.Second), repeats: i % 3})
		}
		set := &l.classes[0].waiting
		var want []*Ticket
		for _, op := range ops {
			ticket := tickets[op%64]
			i, found := slices.BinarySearchFunc(want, ticket, before)
			require.Equal(t, found, set.has(ticket))
			require.Equal(t, i, set.rank(ticket))
			if op < 128 {
				set.insert(ticket)
				if !found {
					want = slices.Insert(want, i, ticket)
				}
			} else {
				set.remove(ticket)
				if found {
					want = slices.Delete(want, i, i+1)
				}
			}
			requireOrder(t, want, set)
		}
	})
}

func requireOrder(t *testing.T, want []*Ticket, set *order) {
	t.Helper()
	require.True(t, slices.Equal(want, slices.Collect(set.all())), "the tickets in their order")
	require.Equal(t, len(want), set.len())
	if len(want) == 0 {
		require.Nil(t, set.first())
		require.Nil(t, set.last())
		return
	}
	require.Same(t, want[0], set.first())
	require.Same(t, want[len(want)-1], set.last())
}

// The depth decides what everything costs. That of a random tree is below
// 5 log2(n), but for a chance of one in many millions.
func TestASetStaysShallow(t *testing.T) {
	t.Parallel()
	const n = 100_000
	l := New(t0, Settings{})
	for i := range n {
		l.classes[0].waiting.insert(&Ticket{seq: uint64(i)})
	}
	var depth func(*knot) int
	depth = func(k *knot) int {
		if k == nil {
			return 0
		}
		return 1 + max(depth(k.left), depth(k.right))
	}
	require.Less(t, depth(l.classes[0].waiting.root), 5*17)
}

func TestIteratingMayStopEarly(t *testing.T) {
	t.Parallel()
	l := New(t0, Settings{})
	for i := range 10 {
		l.classes[0].waiting.insert(&Ticket{seq: uint64(i)})
	}
	seen := 0
	for ticket := range l.classes[0].waiting.all() {
		if seen++; ticket.seq == 3 {
			break
		}
	}
	require.Equal(t, 4, seen)
}
