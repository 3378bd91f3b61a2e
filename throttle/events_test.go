package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestEventsTellTheLifeOfAStart(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
	a, b := n.joinAndWait("a"), n.joinAndWait("b")
	n.pass(3 * time.Second)
	n.end("a", reasons.Ready)
	n.pass(2 * time.Second)
	c := n.joinAndWait("c")
	n.end("c", reasons.Deleted)
	n.end("b", reasons.Deleted)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	const within = reasons.WithinLimits
	events := n.l.Drain()
	require.Equal(t, []Event{
		{State: Waiting, Time: at(0), Ticket: a, Waiting: 1},
		{State: Starting, Time: at(0), Ticket: a, Reason: within, Admission: within, Starting: 1},
		{State: Waiting, Time: at(0), Ticket: b, Waiting: 1, Starting: 1},
		{State: Started, Time: at(3), Ticket: a, Reason: reasons.Ready, Admission: within, Took: 3 * time.Second, Waiting: 1},
		{State: Starting, Time: at(3), Ticket: b, Reason: within, Admission: within, Took: 3 * time.Second, Starting: 1},
		{State: Waiting, Time: at(5), Ticket: c, Waiting: 1, Starting: 1},
		{State: Gone, Time: at(5), Ticket: c, Reason: reasons.Deleted, Starting: 1},
		{State: Gone, Time: at(5), Ticket: b, Reason: reasons.Deleted, Admission: within, Took: 2 * time.Second},
	}, events)
	require.Empty(t, n.l.Drain(), "each is given once")
}

func TestChangedReportsEveryEvent(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Minute, MaxWait: time.Hour})
	told := func(what string) {
		t.Helper()
		require.True(t, n.l.Changed(), what)
		require.False(t, n.l.Changed(), "it reports %s twice", what)
	}
	a := n.join("a")
	told("Join")
	a.Wait(n.now)
	told("Wait")
	b := n.join("b")
	told("Join")
	b.Wait(n.now)
	told("Wait for a ticket that is not admitted, until its maxWait")
	n.l.Lookup("b").StopWaiting(n.now)
	told("StopWaiting, after which the ticket may be abandoned")
	n.l.Configure(n.now, *n.l.settings)
	told("Configure")
	n.pass(time.Minute)
	told("an Advance that ended a start")
	n.l.Adopt(n.now, Request{UID: "c"}, n.now)
	told("Adopted")
	n.join("d").StartExempt(n.now)
	told("StartExempt")
	n.l.Lookup("b").DeadlineReached(n.now)
	told("DeadlineReached")
	n.end("c", reasons.Ready)
	told("End")

	n.pass(0)
	n.l.Snapshot(n.now)
	n.join("b")
	require.False(t, n.l.Changed(), "nothing has changed")
}
