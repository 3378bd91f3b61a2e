package leases

import (
	"slices"
	"time"
)

// release gives a claim back. It is not used from now on, whatever the answer is.
func (p *planner) release(now time.Time, g *group, c *claim) {
	delete(g.claims, c.n)
	if s := p.slotOf(g, c.n); !s.busy {
		made := p.call(now, g, releaseSlot, s)
		made.group, made.claim = g, c
	} // else adopt does it, once the renewal under way is answered
}

// keepUsed takes out of the calls, none of which is made yet, the releases of slots that are
// used: by pods that were admitted after the groups were looked at, and before the limiter was
// told to admit no more. It tells whether there were any.
func (p *planner) keepUsed(calls []call, demands []demand) (_ []call, kept bool) {
	starting := map[string]int{}
	for _, d := range demands {
		starting[identify(d.policy.UID, d.key)] = d.starting
	}
	calls = slices.DeleteFunc(calls, func(c call) bool {
		g := c.group
		if g == nil || starting[g.id] <= len(g.claims) {
			return false
		}
		if c.claim != nil {
			g.claims[c.claim.n] = c.claim
		}
		p.groups[g.id] = g
		p.slotOf(g, c.slot.n).busy = false
		p.stats.calls[c.verb]--
		kept = true
		return true
	})
	return calls, kept
}

// renew renews the claims that are due.
func (p *planner) renew(now time.Time, g *group, alarm *alarm) {
	for _, c := range g.claims {
		s := p.slotOf(g, c.n)
		if at := later(c.renew, s.retry); !s.busy && now.Before(at) {
			alarm.at(at)
		} else if !s.busy {
			p.call(now, g, renewSlot, s)
		}
		alarm.at(c.until)
	}
}

// adopt deals with the slots that are this node's by their Leases and that it does not
// know to hold: an earlier daemon had them, or an answer was lost. They are taken again
// where they are needed, and given back where not.
func (p *planner) adopt(now time.Time, g *group, alarm *alarm) {
	for s := range p.slots.all(g.id) {
		if s.gone || s.holder != p.holder || s.busy || g.claims[s.n] != nil {
			continue
		}
		switch {
		case now.Before(s.retry):
			alarm.at(s.retry)
		case g.missing() > 0 && !g.taking:
			g.taking = true
			p.call(now, g, takeSlot, s)
		case g.missing() == 0:
			p.call(now, g, releaseSlot, s).group = g
		}
	}
}

// sweep deletes the Leases whose holders have been gone for long, so that groups which
// nobody starts any more leave nothing behind.
func (p *planner) sweep(now time.Time, alarm *alarm) {
	for id := range p.slots {
		for s := range p.slots.all(id) {
			if s.gone || s.busy || s.holder == p.holder && p.groups[id] != nil {
				continue
			}
			if s.sweep.IsZero() {
				s.sweep = s.freeAt()
				if s.holder != p.holder {
					s.sweep = s.sweep.Add(sweepAfter + time.Duration(p.rand.Int64N(int64(sweepAfter))))
				}
			}
			if at := later(s.sweep, s.retry); now.Before(at) {
				alarm.at(at)
			} else {
				p.call(now, p.groups[id], sweepSlot, s)
			}
		}
	}
}
