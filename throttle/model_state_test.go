package throttle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
)

func (m *model) bucketTokens() float64 {
	if m.l.bucket == nil {
		return 0
	}
	return m.l.bucket.TokensAt(m.now)
}

// checkState compares the limiter's sets with the model's.
func (m *model) checkState() {
	m.t.Helper()
	starting := func(slot bool) []*pod {
		pods := m.sorted(func(p *pod) bool { return p.state == Starting && p.slot == slot })
		slices.SortFunc(pods, func(a, b *pod) int {
			return cmp.Or(a.admitted.Compare(b.admitted), cmp.Compare(a.number, b.number))
		})
		return pods
	}
	for _, set := range []struct {
		name string
		want []*pod
		got  []*Ticket
	}{
		{"waiting", m.queue(false), m.waitingTickets(func(c *class) *order { return &c.waiting })},
		{"present", m.queue(true), m.waitingTickets(func(c *class) *order { return &c.present })},
		{"starting with a slot", starting(true), slices.Collect(m.l.starting.all())},
		{"starting without a slot", starting(false), slices.Collect(m.l.unheld.all())},
	} {
		got := set.got
		same := slices.EqualFunc(set.want, got, func(p *pod, t *Ticket) bool { return p.t == t })
		if !same {
			require.Fail(m.t, set.name, "want %s, got %s", uids(tickets(set.want)), uids(got))
		}
	}
	require.Equal(m.t, m.lent, m.l.slots.lent, "lent")
	pulling := m.sorted(func(p *pod) bool { return p.state == Waiting && !p.pulls.IsZero() })
	require.ElementsMatch(m.t, uids(tickets(pulling)), uids(slices.Collect(m.l.pulling.all())), "pulling")
	for _, p := range m.pods {
		if state, _ := p.t.Status(); state != p.state {
			require.Fail(m.t, "state", "%s: want %s, got %s", p.uid, p.state, state)
		}
		if decided(p.t) != (p.state != Waiting) {
			require.Fail(m.t, "decided", "%s is %s", p.uid, p.state)
		}
	}
	for _, p := range m.in(Waiting, Starting) {
		if m.l.Lookup(p.uid) != p.t {
			require.Fail(m.t, "lookup", "%s has another ticket", p.uid)
		}
	}
	m.checkGroups()
	require.LessOrEqual(m.t, len(m.l.ended), endedKept)
	require.LessOrEqual(m.t, len(m.l.tickets), len(m.in(Waiting, Starting))+endedKept)
}

// waitingTickets gives what is in a set of all classes, in the order of the queue. Each class
// keeps that order.
func (m *model) waitingTickets(of func(*class) *order) (all []*Ticket) {
	m.t.Helper()
	for _, c := range m.l.classes {
		one := slices.Collect(of(c).all())
		require.True(m.t, slices.IsSortedFunc(one, before), "the order within a class")
		all = append(all, one...)
	}
	slices.SortFunc(all, before)
	return all
}

func tickets(pods []*pod) (all []*Ticket) {
	for _, p := range pods {
		all = append(all, p.t)
	}
	return all
}

func uids(tickets []*Ticket) (all []string) {
	for _, t := range tickets {
		all = append(all, t.UID())
	}
	return all
}

// checkQuiet checks what holds whenever the limiter has caught up with the time:
// nobody who is present waits for nothing.
func (m *model) checkQuiet() {
	m.t.Helper()
	present := m.queue(true)
	if next := m.next(); next != nil {
		require.False(m.t, m.fits(-nearly), "%s is present and no limit refuses", next.uid)
		if due, ok := m.loanDue(); ok && m.othersFit(-nearly) {
			require.True(m.t, due.After(m.now), "%s is present, and a loan is due", next.uid)
		}
	}
	if m.mayPass() {
		for _, p := range present {
			require.False(m.t, m.due(p, m.now) && m.mayPassPolicies(p), "%s has waited for too long, and nobody is above the limit", p.uid)
		}
	}
	view := m.l.Snapshot(m.now)
	require.Len(m.t, view.Waiting, len(m.in(Waiting)))
	require.Len(m.t, view.Starting, len(m.in(Starting)))
	require.Len(m.t, m.l.Turns(m.now), len(present))
	if len(m.members) > 0 {
		m.checkHeld(view)
	}
}

// checkHeld checks what is said of those that wait: a policy is named where one holds
// them, and only there.
func (m *model) checkHeld(s Snapshot) {
	m.t.Helper()
	for i, v := range s.Waiting {
		runs, late := m.holds(v.UID)
		m.trace = append(m.trace, fmt.Sprintf("%12s   %s %s %s, %d ahead", "", v.UID, v.Reason, v.Held, v.Ahead))
		m.happened["Held/"+string(v.Reason)]++
		switch {
		case len(runs) > 0:
			require.Contains(m.t, runs, v.Reason, v.UID)
			require.Zero(m.t, v.Expected)
		case len(late) > 0:
			require.Contains(m.t, late, v.Reason, v.UID)
		default:
			require.Equal(m.t, GroupKey{}, v.Held.Policy, v.UID)
		}
		require.Equal(m.t, len(runs)+len(late) > 0, v.Basis == BasisPolicy)
		m.checkAhead(v.UID, v.Ahead, s.Waiting[:i])
		one, _ := m.l.View(m.now, v.UID)
		require.Equal(m.t, v.Ahead, one.Ahead, "the same, asked for one")
	}
}

// checkAhead checks how many are said to go before a pod: all of its class and all that
// no policy bounds, and no more than there are.
func (m *model) checkAhead(uid string, ahead int, before []TicketView) {
	m.t.Helper()
	least, class := 0, m.class(uid)
	for _, v := range before {
		if c := m.class(v.UID); c == class || c == "" {
			least++
		}
	}
	require.GreaterOrEqual(m.t, ahead, least, uid)
	require.LessOrEqual(m.t, ahead, len(before), uid)
}
