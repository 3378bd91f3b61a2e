package throttle

import (
	"time"

	"github.com/stretchr/testify/require"
)

// noProgressAfter gives the time of the settings; below zero: nothing is lent.
func (m *model) noProgressAfter() time.Duration {
	if m.settings.NoProgressAfter == 0 {
		return 10 * time.Second
	}
	return m.settings.NoProgressAfter
}

// loanDue gives when a slot is to be lent; false: not as long as things are as they
// are.
func (m *model) loanDue() (due time.Time, ok bool) {
	most, after := m.most(), m.noProgressAfter()
	if most == 0 || after < 0 || m.slots() < most+m.lent {
		return due, false
	}
	for _, p := range m.in(Starting) {
		if !p.slot {
			continue
		}
		if p.stalled.IsZero() {
			return due, false
		}
		patience := after
		if m.lent > 0 {
			patience = after / 2
		}
		if at := p.stalled.Add(patience); at.After(due) {
			due = at
		}
	}
	if next := m.loanAt.Add(after); m.lent > 0 && next.After(due) {
		due = next
	}
	return due, true
}

// lend checks that a slot may be lent now, and lends as many as it is time for.
func (m *model) lend() {
	m.t.Helper()
	due, ok := m.loanDue()
	require.True(m.t, ok, "a loan, although not every slot is held by a start without progress")
	require.False(m.t, due.After(m.at), "a loan before its time")
	require.True(m.t, m.othersFit(nearly), "a loan, although another limit refuses")
	size := 1
	if m.loan > 0 && m.at.Sub(m.loanAt) <= 3*m.noProgressAfter() {
		size = 2 * m.loan
	}
	size = min(size, len(m.in(Waiting)))
	m.lent, m.loan, m.loanAt = m.slots()-m.most()+size, size, m.at
}

// repay takes back what is not used any more.
func (m *model) repay() {
	m.lent = min(m.lent, max(0, m.slots()-m.most()))
	if m.most() == 0 {
		m.lent = 0
	}
	if m.lent == 0 {
		m.loan = 0
	}
}
