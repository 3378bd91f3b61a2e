package throttle

import (
	"cmp"
	"maps"
	"slices"
)

// member is what a pod counts for, in which groups. It is there while the pod waits,
// starts or runs, and has a part in any group.
type member struct {
	uid            string
	parts          []part
	ticket         *Ticket // Waiting or Starting; nil: it has none
	running, ready bool
}

// part is the part of a pod in one group.
type part struct {
	group  *group
	asks   Amounts
	bypass bool
}

// memberLocked gives the member of the pod, and makes it where there is none.
func (l *Limiter) memberLocked(uid string) *member {
	m := l.members[uid]
	if m == nil {
		m = &member{uid: uid}
		l.members[uid] = m
	}
	return m
}

// dropMemberLocked forgets a pod that counts for nothing.
func (l *Limiter) dropMemberLocked(m *member) {
	if len(m.parts) > 0 && (m.ticket != nil || m.running) {
		return
	}
	if m.ticket != nil {
		m.ticket.member = nil
	}
	m.count(-1)
	for _, p := range m.parts {
		l.dropGroupLocked(p.group)
	}
	delete(l.members, m.uid)
}

// has tells whether the pod has the parts that the groups make.
func (m *member) has(groups []Membership) bool {
	if len(m.parts) != len(groups) {
		return false
	}
	for _, in := range groups {
		i, found := slices.BinarySearchFunc(m.parts, in.Key, func(p part, key GroupKey) int { return p.group.key.compare(key) })
		if !found || m.parts[i].bypass != in.Bypass || !maps.Equal(m.parts[i].asks, in.Requests) {
			return false
		}
	}
	return true
}

// setPartsLocked replaces the parts of a pod. Of two in one group, the first counts.
// then is called before groups that nobody is in any more are forgotten.
func (l *Limiter) setPartsLocked(m *member, groups []Membership, then func()) {
	old := m.parts
	m.count(-1)
	m.parts = nil
	for _, in := range groups {
		m.parts = append(m.parts, part{group: l.groupLocked(in.Key), asks: in.Requests, bypass: in.Bypass})
	}
	slices.SortStableFunc(m.parts, func(a, b part) int { return a.group.key.compare(b.group.key) })
	m.parts = slices.CompactFunc(m.parts, func(a, b part) bool { return a.group == b.group })
	m.count(1)
	then()
	for _, p := range old {
		l.dropGroupLocked(p.group)
	}
}

func (k GroupKey) compare(other GroupKey) int {
	return cmp.Or(cmp.Compare(k.Policy, other.Policy), cmp.Compare(k.Group, other.Group))
}

// count adds what the pod counts for to its groups, or takes it away.
func (m *member) count(by int) {
	for _, p := range m.parts {
		g := p.group
		g.pods += by
		if t := m.ticket; t != nil && t.state == Waiting {
			g.waiting += by
		}
		if t := m.ticket; t != nil && t.state == Starting {
			g.starting.change(p.asks, int64(by))
		}
		if m.running {
			g.running.change(p.asks, int64(by))
		}
		if m.running && m.ready {
			g.ready += by
		}
	}
}

// change changes what the pod counts for.
func (m *member) change(how func()) {
	m.count(-1)
	how()
	m.count(1)
}

// joinMemberLocked gives a new ticket its parts.
func (l *Limiter) joinMemberLocked(t *Ticket, groups []Membership) {
	m := l.members[t.uid]
	if m == nil && len(groups) == 0 {
		return
	}
	if m == nil {
		m = l.memberLocked(t.uid)
	}
	t.member = m
	m.change(func() { m.ticket = t })
	if groups != nil {
		l.setPartsLocked(m, groups, func() {})
	}
	l.dropMemberLocked(m)
}

// start turns a Waiting ticket into a Starting one, and counts that.
func (m *member) start(t *Ticket) {
	if m == nil {
		t.state = Starting
		return
	}
	m.change(func() { t.state, m.running, m.ready = Starting, true, false })
}

// endMemberLocked ends a ticket, and counts that.
func (l *Limiter) endMemberLocked(t *Ticket, state State, reason Reason) {
	m := t.member
	if m == nil {
		t.state = state
		return
	}
	m.change(func() {
		m.ready = m.ready || (t.state == Starting && reason.tellsReady())
		t.state, m.ticket = state, nil
	})
	t.member = nil
	l.dropMemberLocked(m)
}
