package throttle

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// settle reads what happened, does what is given, and checks the state that is
// left. It gives the number of events.
func (m *model) settle(then ...func()) (events int) {
	m.t.Helper()
	m.trace = append(m.trace, fmt.Sprintf("%12s %s", m.at.Sub(t0), m.asked.what))
	if e := m.asked.of; e != nil {
		m.trace[len(m.trace)-1] += " " + e.uid
	}
	all, lost := m.l.Drain()
	require.Zero(m.t, lost)
	for _, e := range all {
		m.apply(e)
	}
	for _, do := range then {
		do()
	}
	m.checkState()
	return len(all)
}

func (m *model) apply(e Event) {
	m.t.Helper()
	m.trace = append(m.trace, fmt.Sprintf("%12s   %s %s %s took %s, waiting %d starting %d",
		e.Time.Sub(t0), e.Kind, e.Ticket.UID(), e.Reason, e.Took, e.Waiting, e.Starting))
	what := string(e.Kind)
	if e.Reason != "" {
		what += "/" + string(e.Reason)
	}
	m.happened[what]++
	if e.Kind == KindJoined {
		m.joined(e)
	}
	p := m.of(e.Ticket)
	switch e.Kind {
	case KindJoined:
	case KindAdmitted:
		m.admitted(e, p)
	case KindExpired:
		require.Same(m.t, m.asked.of, p)
		require.Equal(m.t, GateExpired, e.Reason)
		require.Equal(m.t, Waiting, p.state)
		require.False(m.t, m.mayPass() && m.mayPassPolicies(p), "refused, although no other is above the limit")
	case KindEnded:
		m.ended(e, p)
	default:
		require.Fail(m.t, "unknown kind", "%+v", e)
	}
	m.mayPass() // forgets the one above the limit when it is not any more
	require.Equal(m.t, len(m.in(Waiting)), e.Waiting, "waiting, as the event says")
	require.Equal(m.t, m.slots(), e.Starting, "starting, as the event says")
}

func (m *model) of(t *Ticket) *pod {
	m.t.Helper()
	for _, p := range m.pods {
		if p.t == t {
			return p
		}
	}
	require.Fail(m.t, "a ticket that nobody joined", t.UID())
	return nil
}

func (m *model) joined(e Event) {
	m.t.Helper()
	r := m.asked.request
	require.Equal(m.t, r.UID, e.Ticket.UID())
	require.Nil(m.t, m.open(r.UID), "a second ticket of one pod")
	p := &pod{
		t: e.Ticket, uid: r.UID, priority: r.Priority, maxWait: r.MaxWait, arrived: m.at,
		number: len(m.pods), state: Waiting, seen: m.at, repeats: r.Repeats,
	}
	if !r.Arrived.IsZero() && r.Arrived.Before(m.at) {
		p.arrived = r.Arrived
	}
	m.pods = append(m.pods, p)
	if m.members[p.uid] != nil || len(r.Groups) > 0 {
		m.change(p.uid, func(o *modelMember) {
			if r.Groups != nil {
				o.groups = r.Groups
			}
		})
	}
}

func (m *model) admitted(e Event, p *pod) {
	m.t.Helper()
	require.Equal(m.t, Waiting, p.state)
	present, at, slot := m.queue(true), m.at, true
	switch e.Reason {
	case Free, SlotLent:
		if most := m.most(); most > 0 {
			require.Equal(m.t, e.Reason == SlotLent, m.slots() >= most, "lent beyond the limit, and only there")
			if m.slots() >= most+m.lent {
				m.lend()
			}
		}
		require.True(m.t, m.fits(nearly), "admitted, although a limit refuses")
		require.Same(m.t, m.next(), p, "the first that is present and that no policy holds")
		m.take()
		m.admittedByRate()
	case Exempt:
		require.Same(m.t, m.asked.of, p)
		slot = p.t.slot
		free := m.fits(nearly) && (m.most() == 0 || m.slots() < m.most())
		require.Equal(m.t, free, slot, "a slot if one is free")
		if slot {
			m.take()
			m.admittedByRate()
		} else {
			m.takes = append(m.takes, m.at)
		}
	case Found:
		require.Equal(m.t, m.asked.request.UID, p.uid)
		at = m.asked.since
	case MaxWait:
		require.Positive(m.t, p.attended, "present")
		require.True(m.t, m.due(p, m.at), "its maxWait is over")
		for _, o := range present {
			require.False(m.t, m.due(o, m.at) && o.arrived.Before(p.arrived) && m.mayPassPolicies(o), "%s has waited longer", o.uid)
		}
		m.pass(p)
	case GateDeadline:
		require.Same(m.t, m.asked.of, p)
		require.Equal(m.t, "expire", m.asked.what)
		m.pass(p)
	default:
		require.Fail(m.t, "no reason of an admission", "%s", e.Reason)
	}
	p.state, p.slot, p.admitted, p.pulls = Starting, slot, at, time.Time{}
	ran := m.member(p.uid).running
	if m.members[p.uid] != nil {
		m.change(p.uid, func(o *modelMember) { o.running, o.ready = true, false })
	}
	if e.Reason != Exempt && e.Reason != Found {
		m.checkRunning(p, ran)
	}
	if most := m.most() + m.lent; most > 0 && m.most() > 0 && slot && e.Reason != Found {
		above := 0
		if m.over == p {
			above = 1
		}
		require.LessOrEqual(m.t, m.slots(), most+above, "starts at a time")
	}
	require.Equal(m.t, at, e.Time)
	require.Equal(m.t, max(0, at.Sub(p.arrived)), e.Took)
	if until, ok := m.bound[p]; ok {
		require.False(m.t, e.Time.After(until), "admitted too late, after %s", until)
	}
}

// pass puts a pod above the limit.
func (m *model) pass(p *pod) {
	m.t.Helper()
	require.True(m.t, m.mayPass(), "another is above the limit")
	require.False(m.t, m.fits(-nearly) && m.next() == p, "over the limit, although every limit allows it")
	require.True(m.t, m.mayPassPolicies(p), "over a limit that nothing passes")
	m.over, m.overAll = p, m.held(p.uid) || !m.othersFit(nearly)
	m.take()
}

func (m *model) ended(e Event, p *pod) {
	m.t.Helper()
	want, took := Gone, time.Duration(0)
	switch p.state {
	case Waiting:
	case Starting:
		took = max(0, m.at.Sub(p.admitted))
		if e.Reason != Deleted && e.Reason != SandboxGone {
			want = Started
		}
	default:
		require.Fail(m.t, "ended twice")
	}
	switch e.Reason {
	case Stuck:
		require.Equal(m.t, Starting, p.state)
		require.GreaterOrEqual(m.t, took, m.settings.startTimeout())
	case Abandoned:
		require.Equal(m.t, Waiting, p.state)
		require.Zero(m.t, p.attended)
		require.GreaterOrEqual(m.t, m.at.Sub(p.seen), abandonAfter)
	default:
		require.Same(m.t, m.asked.of, p)
		require.Equal(m.t, m.asked.reason, e.Reason)
	}
	require.Equal(m.t, took, e.Took)
	require.Equal(m.t, m.at, e.Time)
	if m.members[p.uid] != nil {
		ready := p.state == Starting && slices.Contains([]Reason{Ready, Settled, Inferred}, e.Reason)
		p.state = want // it has no ticket any more
		m.change(p.uid, func(o *modelMember) { o.ready = o.ready || ready })
	}
	p.state, p.pulls = want, time.Time{}
	if p.slot {
		m.mayPass() // forgets the one above the limit before loans are taken back
		m.repay()
	}
}
