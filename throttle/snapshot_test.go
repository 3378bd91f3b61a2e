package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSnapshotShowsAllThatWaitsAndStarts(t *testing.T) {
	t.Parallel()
	s := Settings{MaxConcurrent: 1, FillEvery: time.Second, Burst: 5}
	n := newNode(t, s)
	n.attend("a")
	n.pass(20 * time.Second)
	n.attend("b")
	n.join("absent")
	n.join("x").StartExempt(n.now)
	n.pass(time.Second)

	held := Held{Reason: Concurrency, Measured: 1, Threshold: 1}
	now, pace := t0.Add(21*time.Second), 21*time.Second // the age of a, the oldest
	require.Equal(t, Snapshot{
		Settings: s, Held: held, Pace: pace, Limit: 1,
		Waiting: []TicketView{
			{
				UID: "b", Name: "ns/b", State: Waiting, Reason: Concurrency, Held: held,
				Present: true, Arrived: t0.Add(20 * time.Second), Expected: pace, Basis: BasisNone,
			},
			{
				UID: "absent", Name: "ns/absent", State: Waiting, Reason: Concurrency, Held: held,
				Ahead: 1, Arrived: t0.Add(20 * time.Second), Expected: 2 * pace, Basis: BasisNone,
			},
		},
		Starting: []TicketView{
			{UID: "a", Name: "ns/a", State: Starting, Reason: Free, Admission: Free, Present: true, Slot: true, Arrived: t0, Admitted: t0},
			{
				UID: "x", Name: "ns/x", State: Starting, Reason: Exempt, Admission: Exempt,
				Arrived: t0.Add(20 * time.Second), Admitted: t0.Add(20 * time.Second),
			},
		},
	}, n.l.Snapshot(now))

	n.end("a", Ready)
	n.end("b", Settled)
	v, ok := n.l.View(now, "b")
	require.True(t, ok)
	require.Equal(t, TicketView{
		UID: "b", Name: "ns/b", State: Started, Reason: Settled, Admission: Free, Present: true,
		Arrived: t0.Add(20 * time.Second), Admitted: now, Ended: now,
	}, v)
	require.Equal(t, []string{"a", "b"}, uidsOf(n.l.Recent(now)))
	_, ok = n.l.View(now, "nobody")
	require.False(t, ok)
}

func TestNamedGivesTheLatestTicketOfThatName(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	for _, uid := range []string{"first", "second", "third"} {
		n.l.Join(n.now, Request{UID: uid, Name: "ns/web-0"}) // a StatefulSet gives a name again
	}
	n.end("first", Deleted)
	v, ok := n.l.Named(n.now, "ns/web-0")
	require.True(t, ok)
	require.Equal(t, "third", v.UID)
	_, ok = n.l.Named(n.now, "ns/nobody")
	require.False(t, ok)
}

func TestASnapshotIsACopy(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.attend("a", "b")
	n.l.Snapshot(n.now).Waiting[0].UID = "changed"
	n.requireWaiting("b")
}

func TestPaceIsAGuessUntilAStartEnded(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 3})
	s := n.l.Snapshot(n.now)
	require.Equal(t, []any{unknownStart / 3, false}, []any{s.Pace, s.PaceObserved})
	for range len(history{}.took) {
		n.observe(time.Minute) // forgotten below
	}
	for range len(history{}.took) {
		n.observe(6 * time.Second)
	}
	s = n.l.Snapshot(n.now)
	require.Equal(t, []any{2 * time.Second, true}, []any{s.Pace, s.PaceObserved})

	for range len(history{}.took) {
		n.attend("deleted") // its slot came free, but not because it started
		n.end("deleted", Deleted)
	}
	require.Equal(t, 2*time.Second, n.l.Snapshot(n.now).Pace)

	n.l.Configure(n.now, Settings{MaxConcurrent: 3, FillEvery: 5 * time.Second})
	require.Equal(t, 5*time.Second, n.l.Snapshot(n.now).Pace, "the slower of both limits")
	n.l.Configure(n.now, Settings{})
	require.Zero(t, n.l.Snapshot(n.now).Pace)
}

func TestTurnsAreOneByOneAtThePaceAmongThosePresent(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(8 * time.Second)
	n.attend("h1", "h2")
	n.join("absent")
	a := n.attend("a")
	n.l.Join(n.now, Request{UID: "urgent", Priority: 1}).Attend(n.now)
	require.Equal(t, []Turn{
		{Ticket: n.l.Lookup("urgent"), Position: 1, Of: 2, Pace: 4 * time.Second},
		{Ticket: a, Position: 2, Of: 2, Pace: 4 * time.Second},
	}, n.l.Turns(n.now))
	a.Leave(n.now)
	require.Len(t, n.l.Turns(n.now), 1)
}
