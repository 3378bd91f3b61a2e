package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func uidsGiven(tickets []*Ticket) (all []string) {
	for _, t := range tickets {
		all = append(all, t.UID())
	}
	return all
}

func TestAbsentTellsForWhomASlotIsFree(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.attend("one", "two")
	for _, uid := range []string{"a", "b"} {
		require.False(t, n.join(uid).TryStart(n.now).Admitted)
	}
	n.l.Join(n.now, Request{UID: "urgent", Priority: 1})
	n.attend("present")
	free, tickets, opens := n.l.Absent(n.now)
	require.Zero(t, free, "no slot is free")
	require.Empty(t, tickets)
	require.Zero(t, opens)

	n.end("one", Ready) // the one that is present takes it
	free, _, _ = n.l.Absent(n.now)
	require.Zero(t, free)

	n.end("two", Ready)
	free, tickets, _ = n.l.Absent(n.now)
	require.Equal(t, 1, free)
	require.Equal(t, []string{"urgent", "a", "b"}, uidsGiven(tickets), "in the order of the queue, and only who is not there")

	require.True(t, tickets[0].TryStart(n.now).Admitted, "whoever is fetched finds the slot")
	free, _, _ = n.l.Absent(n.now)
	require.Zero(t, free)
}

func TestAbsentTellsWhenALimitOpensByItself(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: time.Minute})
	n.attend("first")
	require.False(t, n.join("second").TryStart(n.now).Admitted)
	free, tickets, opens := n.l.Absent(n.now)
	require.Zero(t, free)
	require.Empty(t, tickets)
	require.WithinDuration(t, n.now.Add(time.Minute), opens, time.Second)

	n.pass(opens.Sub(n.now))
	free, tickets, _ = n.l.Absent(n.now)
	require.Equal(t, 1, free, "one at a time, where the limit is no number of starts")
	require.Equal(t, []string{"second"}, uidsGiven(tickets))
}

func TestAbsentIsBoundedAndQuietWhereNobodyIsAbsent(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	free, tickets, opens := n.l.Absent(n.now)
	require.Zero(t, free)
	require.Empty(t, tickets)
	require.Zero(t, opens)
	for i := range 2 * mostAbsent {
		n.join(string(rune('A' + i)))
	}
	free, tickets, _ = n.l.Absent(n.now)
	require.Equal(t, 1, free)
	require.Len(t, tickets, mostAbsent)
}
