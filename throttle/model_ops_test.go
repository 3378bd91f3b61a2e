package throttle

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

func (m *model) join(r Request) {
	m.t.Helper()
	m.asked = asked{what: "join " + r.UID, request: r}
	was := m.open(r.UID)
	if was != nil {
		was.seen = m.at
		if was.state == Waiting && !r.Arrived.IsZero() && r.Arrived.Before(was.arrived) {
			was.arrived = r.Arrived
		}
	}
	t := m.l.Join(m.late, r)
	events := m.settle()
	if was != nil {
		require.Same(m.t, was.t, t)
		require.Zero(m.t, events)
	} else {
		require.Equal(m.t, 1, events)
	}
}

func (m *model) found(r Request, since time.Time) {
	m.t.Helper()
	if since.After(m.at) {
		since = m.at
	}
	m.asked = asked{what: "found " + r.UID, request: r, since: since}
	t := m.l.Found(m.late, r, since)
	m.settle()
	require.Equal(m.t, Starting, m.of(t).state)
}

// arrive says that one more stands there for the pod: its images are there.
func (m *model) arrive(p *pod) {
	p.attended++
	p.seen = m.at
	if p.attended == 1 && p.state == Waiting {
		p.pulled, p.pulls = true, time.Time{}
	}
}

func (m *model) attend(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "attend", of: p}
	m.arrive(p)
	p.t.Attend(m.late)
	m.settle()
}

func (m *model) leave(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "leave", of: p}
	p.attended = max(0, p.attended-1)
	p.seen = m.at
	p.t.Leave(m.late)
	require.Zero(m.t, m.settle())
}

func (m *model) tryStart(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "tryStart", of: p}
	tokens, admitted := m.bucketTokens(), p.state != Waiting
	m.arrive(p)
	p.pulled, p.pulls = true, time.Time{}
	d := p.t.TryStart(m.late)
	events := m.settle(func() { p.attended-- })
	require.Equal(m.t, p.state != Waiting, d.Admitted)
	if admitted || !d.Admitted {
		require.Zero(m.t, events, "nobody was admitted")
		require.InDelta(m.t, tokens, m.bucketTokens(), nearly, "a refusal takes nothing")
	}
	if !d.Admitted {
		require.Equal(m.t, d.Reason, d.Held.Reason)
		runs, late := m.holds(p.uid)
		switch {
		case len(runs) == 0 && d.Reason == PolicyRunning:
			require.True(m.t, m.full(p), "nobody comes before it who uses what is left")
		case len(runs)+len(late) > 0:
			require.Contains(m.t, append(runs, late...), d.Reason)
		case m.class(p.uid) == "":
			require.Contains(m.t, []Reason{Concurrency, Rate, CPULoad, Pressure}, d.Reason)
		default:
			require.Contains(m.t, []Reason{Concurrency, Rate, CPULoad, Pressure, Queued, Absent}, d.Reason)
		}
		if len(m.members) == 0 {
			require.Same(m.t, p, m.queue(false)[d.Ahead])
		}
	}
}

func (m *model) letUp(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "letUp", of: p}
	tokens, coming, pulling, urgent := m.bucketTokens(), false, 0, 0
	wasNear := m.near(p)
	for _, o := range m.in(Waiting) {
		runs, _ := m.holds(o.uid)
		competes := len(runs) == 0 || m.class(o.uid) == m.class(p.uid)
		coming = coming || (o != p && competes && (m.near(o) || o.t.comes.After(m.at)))
		if o.priority > p.priority && !o.pulled && !o.t.letUp && o.t.comes.After(m.at) {
			urgent++
		}
		if o != p && !o.pulls.IsZero() {
			pulling++
		}
	}
	d := p.t.LetUp(m.late, waitable)
	p.seen = m.at
	if p.state == Waiting {
		switch {
		case d.Admitted && !p.pulled && p.pulls.IsZero():
			p.pulls = m.at
		case !d.Admitted:
			p.pulls = time.Time{}
		}
	}
	require.Zero(m.t, m.settle())
	require.InDelta(m.t, tokens, m.bucketTokens(), nearly, "it takes nothing")
	full := m.settings.MaxPulling > 0 && pulling >= m.settings.MaxPulling && !p.pulled
	switch {
	case p.state != Waiting:
		require.True(m.t, d.Admitted)
	case d.Reason == Pulling:
		require.True(m.t, full, "a place is free, or it needs none")
	case d.Reason == Queued:
		free := m.settings.MaxPulling - pulling
		require.True(m.t, m.settings.MaxPulling > 0 && 0 < free && free <= urgent, "none of a higher priority needs the place")
	case d.Reason == GateRoom:
		require.True(m.t, coming, "nobody else comes")
	case slices.Contains([]Reason{PolicyStarting, PolicyPacer, PolicyClaim}, d.Reason):
		_, late := m.holds(p.uid)
		require.Contains(m.t, late, d.Reason)
	case d.Reason == Unadmittable:
		runs, _ := m.holds(p.uid)
		require.Contains(m.t, runs, d.Reason)
	case d.Reason == PolicyRunning:
		require.True(m.t, m.full(p), "nobody comes before it who uses what is left")
	default:
		require.True(m.t, !full || m.due(p, m.at), "let up without a place")
		require.True(m.t, wasNear || !m.overbooked(p), "let up to wait for what others will use")
	}
}

// near tells whether a Waiting pod was let up, or stands there.
func (m *model) near(p *pod) bool { return p.attended > 0 || p.t.letUp }

// withOthers adds what those use that wait near their turn and that the group may let
// run, and, if wanted, those that come.
func (m *model) withOthers(p *pod, in Membership, coming bool) Usage {
	u := m.usage(in.Key).Running
	for _, o := range m.in(Waiting) {
		if o == p || m.member(o.uid).running || !(m.near(o) || (coming && o.t.comes.After(m.at))) {
			continue
		}
		if runs, _ := m.holds(o.uid); !coming && slices.Contains(runs, Unadmittable) {
			continue
		}
		for _, other := range m.member(o.uid).groups {
			if other.Key != in.Key || other.Bypass {
				continue
			}
			u.Pods++
			for resource, amount := range other.Requests {
				u.Requests[resource] += max(0, amount)
			}
		}
	}
	return u
}

// full tells whether a bound of those that run is used up with all others that come.
func (m *model) full(p *pod) bool { return m.aboveRunning(p, true) }

// overbooked tells whether it is with those near their turn alone.
func (m *model) overbooked(p *pod) bool { return m.aboveRunning(p, false) }

func (m *model) aboveRunning(p *pod, coming bool) bool {
	o := m.member(p.uid)
	for _, in := range o.groups {
		if !in.Bypass && !o.running && above(m.policies[in.Key.Policy].Running, m.withOthers(p, in, coming), in.Requests) {
			return true
		}
	}
	return false
}

func (m *model) letDown(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "letDown", of: p}
	p.t.LetDown()
	p.pulled, p.pulls = false, time.Time{}
	require.Zero(m.t, m.settle())
}

func (m *model) observe(s Signals) {
	m.t.Helper()
	m.asked = asked{what: fmt.Sprintf("observe %+v", s[SignalCPU])}
	m.signals = s
	was := m.most()
	m.l.Observe(m.late, s)
	if m.most() != was {
		m.repay()
	}
	m.settle()
}

func (m *model) setStalled(p *pod, since time.Time) {
	m.t.Helper()
	m.asked = asked{what: fmt.Sprintf("stalled since %s", since.Sub(t0)), of: p}
	if p.state == Starting {
		p.stalled = since
		if !since.IsZero() && since.Before(p.admitted) {
			p.stalled = p.admitted
		}
	}
	if m.open(p.uid) == p {
		m.l.SetStalled(m.late, p.uid, since)
	}
	m.settle()
}

func (m *model) expire(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "expire", of: p}
	m.arrive(p)
	d := p.t.Expire(m.late)
	m.settle(func() { p.attended-- })
	require.Equal(m.t, p.state != Waiting, d.Admitted)
	if !d.Admitted {
		require.Equal(m.t, GateExpired, d.Reason)
	}
}

func (m *model) end(p *pod, reason Reason) {
	m.t.Helper()
	m.asked = asked{what: "end " + string(reason), of: p, reason: reason}
	was := p.state
	p.t.End(m.late, reason)
	events := m.settle()
	if was == Started || was == Gone {
		require.Equal(m.t, was, p.state)
		require.Zero(m.t, events)
	}
}

func (m *model) startExempt(p *pod) {
	m.t.Helper()
	m.asked = asked{what: "startExempt", of: p}
	p.t.StartExempt(m.late)
	m.settle()
	require.NotEqual(m.t, Waiting, p.state)
}

func (m *model) setPriority(uid string, priority int32, maxWait time.Duration) {
	m.t.Helper()
	m.asked = asked{what: "setPriority " + uid}
	if p := m.open(uid); p != nil && p.state == Waiting {
		p.priority, p.maxWait = priority, maxWait
	}
	m.l.SetPriority(m.late, uid, priority, maxWait)
	m.settle()
}

func (m *model) configure(s Settings) {
	m.t.Helper()
	m.asked = asked{what: "configure " + written(s)}
	was := m.most()
	m.reconfigured(s)
	m.l.Configure(m.late, s)
	if m.most() != was {
		m.repay()
	}
	m.settle()
}

func (m *model) advance(to time.Time) (next time.Time, events int) {
	m.t.Helper()
	m.now, m.at, m.late = to, to, to
	m.asked = asked{what: "advance"}
	for _, p := range m.in(Waiting) {
		if !p.pulls.IsZero() && to.Sub(p.pulls) >= m.settings.startTimeout() {
			p.pulls = time.Time{}
		}
	}
	next = m.l.Advance(to)
	events = m.settle()
	m.checkQuiet()
	require.True(m.t, next.IsZero() || next.After(to), "next is %s at %s: a caller would spin", next, to)
	return next, events
}

// followNext advances to the times that the limiter asks for. Each time
// something happens, else a caller would be woken for nothing.
func (m *model) followNext(times int) {
	m.t.Helper()
	next, _ := m.advance(m.now)
	for range times {
		if next.IsZero() {
			return
		}
		var events int
		next, events = m.advance(next)
		require.Positive(m.t, events, "nothing happened at the time that was asked for")
	}
}
