package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// t0 is the time at which every test begins.
var t0 = time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)

// node drives one limiter on a clock that stands still until it is moved.
type node struct {
	t   *testing.T
	l   *Limiter
	now time.Time
}

// newNode returns a node with pods that have joined and wait.
func newNode(t *testing.T, s Settings, uids ...string) *node {
	t.Helper()
	n := &node{t: t, l: New(t0, s), now: t0}
	n.joinAndWait(uids...)
	return n
}

// testNode is newNode for a parallel test.
func testNode(t *testing.T, s Settings, uids ...string) *node {
	t.Helper()
	t.Parallel()
	return newNode(t, s, uids...)
}

// pass moves the clock and advances the limiter.
func (n *node) pass(d time.Duration) time.Time {
	n.now = n.now.Add(d)
	return n.l.Advance(n.now)
}

func (n *node) join(uid string) *Ticket {
	return n.l.Join(n.now, Request{UID: uid, Name: "ns/" + uid})
}

// joinAndWait joins pods, each with a waiter from now on.
func (n *node) joinAndWait(uids ...string) (last *Ticket) {
	for _, uid := range uids {
		last = n.join(uid)
		last.Wait(n.now)
	}
	return last
}

func (n *node) end(uid string, reason reasons.Reason) {
	n.t.Helper()
	t := n.l.Lookup(uid)
	require.NotNil(n.t, t, "no ticket of %s", uid)
	t.End(n.now, reason)
}

func (n *node) requireState(uid string, state State, reason reasons.Reason) {
	n.t.Helper()
	t := n.l.Lookup(uid)
	require.NotNil(n.t, t, "no ticket of %s", uid)
	gotState, gotReason := t.Status()
	require.Equal(n.t, []any{state, reason}, []any{gotState, gotReason}, "state and reason of %s", uid)
}

func uidsOf(views []TicketView) []string {
	uids := make([]string, 0, len(views))
	for _, v := range views {
		uids = append(uids, v.UID)
	}
	return uids
}

func (n *node) requireWaiting(uids ...string) {
	n.t.Helper()
	require.Equal(n.t, append([]string{}, uids...), uidsOf(n.l.Snapshot(n.now).Waiting), "waiting")
}

func (n *node) requireStarting(uids ...string) {
	n.t.Helper()
	require.ElementsMatch(n.t, uids, uidsOf(n.l.Snapshot(n.now).Starting), "starting")
}

// decided reports whether the channel of the ticket is closed.
func decided(t *Ticket) bool {
	select {
	case <-t.Decided():
		return true
	default:
		return false
	}
}

// kinds returns "state/reason uid" of the events since the last call.
func (n *node) kinds() (all []string) {
	n.t.Helper()
	for _, e := range n.l.Drain() {
		s := string(e.State)
		if e.Reason != "" {
			s += "/" + string(e.Reason)
		}
		all = append(all, s+" "+e.Ticket.UID())
	}
	return all
}

// busyWith returns the answer of Busy as a word.
func (n *node) busyWith() string {
	starting, waiting := n.l.Busy(n.now)
	switch {
	case waiting:
		return "waiting"
	case starting:
		return "starting"
	default:
		return "idle"
	}
}

// watched reports whether any limit asks for signals.
func (n *node) watched() bool {
	for signal := range numSignals {
		if n.l.settings.Watches(signal) {
			return true
		}
	}
	return false
}
