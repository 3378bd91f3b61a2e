package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlySoManyPullAtATime(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxPulling: 2})
	require.Equal(t, 2, n.letUp("pod", 5))
	d := n.l.Lookup("pod-02").LetUp(n.now, waitable)
	require.False(t, d.Admitted)
	require.Equal(t, Pulling, d.Reason)
	require.Equal(t, "2 of 2 pulling images", d.Held.String())
	require.Equal(t, 2, d.Ahead)
	require.Equal(t, 2, n.l.Snapshot(n.now).Pulling)
	require.True(t, n.l.Lookup("pod-00").LetUp(n.now, waitable).Admitted, "it has its place")

	require.True(t, n.l.Lookup("pod-00").TryStart(n.now).Admitted, "no limit on starts")
	require.True(t, n.l.Lookup("pod-02").LetUp(n.now, waitable).Admitted, "the place came free")
	require.False(t, n.l.Lookup("pod-03").LetUp(n.now, waitable).Admitted)
}

func TestAPlaceToPullIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(n *node, a *Ticket){
		"at a container, refused": func(n *node, a *Ticket) { require.False(t, a.TryStart(n.now).Admitted) },
		"at a container, waiting": func(n *node, a *Ticket) { a.Attend(n.now) },
		"its sandbox is gone":     func(_ *node, a *Ticket) { a.LetDown() },
		"deleted":                 func(n *node, a *Ticket) { a.End(n.now, Deleted) },
		"exempt":                  func(n *node, a *Ticket) { a.StartExempt(n.now) },
		"found":                   func(n *node, _ *Ticket) { n.l.Found(n.now, Request{UID: "a"}, n.now) },
		"it takes too long":       func(n *node, _ *Ticket) { n.pass(DefaultStartTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, Settings{MaxConcurrent: 1, StartTimeout: DefaultStartTimeout, MaxPulling: 1})
			n.attend("holder")
			a := n.join("a")
			require.True(t, a.LetUp(n.now, waitable).Admitted)
			require.False(t, n.join("b").LetUp(n.now, waitable).Admitted)
			give(n, a)
			give(n, a)
			require.Zero(t, n.l.Snapshot(n.now).Pulling)
			require.True(t, n.join("b").LetUp(n.now, waitable).Admitted)
			require.Equal(t, 1, n.l.Snapshot(n.now).Pulling)
		})
	}
}

func TestOneWhoStoodAtAContainerPullsNoMore(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, MaxPulling: 1})
	n.attend("holder")
	require.True(t, n.join("a").LetUp(n.now, waitable).Admitted)
	b := n.join("b")
	require.False(t, b.TryStart(n.now).Admitted)
	require.True(t, b.LetUp(n.now, waitable).Admitted, "at its container")
	b.LetDown()
	require.False(t, b.LetUp(n.now, waitable).Admitted, "a new sandbox")
}

func TestNoPlaceIsTakenWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, MaxPulling: 10})
	n.attend("holder")
	require.Equal(t, 3, n.letUp("pod", 9))
	require.Equal(t, 3, n.l.Snapshot(n.now).Pulling)
}

// An image that cannot be pulled, or a crowd that is always there first, keeps
// nobody out for ever.
func TestOneWhoWaitedTooLongIsLetUpInAnyCaseOneAtATime(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, MaxPulling: 1, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.attend("holder")
	require.True(t, n.join("pulls").LetUp(n.now, waitable).Admitted)
	a, b := n.join("a"), n.join("b")
	require.False(t, a.LetUp(n.now, waitable).Admitted)
	n.pass(time.Minute)
	require.True(t, b.LetUp(n.now, waitable).Admitted)
	require.False(t, a.LetUp(n.now, waitable).Admitted, "one at a time")
	require.True(t, b.TryStart(n.now).Admitted, "over the limit")
	require.True(t, a.LetUp(n.now, waitable).Admitted)
}
