package leases

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// verb is what is asked of the API server.
type verb string

const (
	takeSlot    verb = "take"    // make the Lease, or replace it as it was seen
	renewSlot   verb = "renew"   // replace it as it was seen
	releaseSlot verb = "release" // delete it as it was seen
	sweepSlot   verb = "sweep"   // the same, of another
	lookSlot    verb = "look"    // read it, where what was seen of it is refused
	probeReads  verb = "probe"   // is the API server there
	probeWrites verb = "dry-run" // may Leases be made
)

// call is one request.
type call struct {
	verb   verb
	wanted verb              // of lookSlot: what would be asked else
	slot   record            // as it was seen; version 0: there is no Lease
	least  uint64            // the version that the Lease must have by now
	era    int               // in which it was sent
	key    throttle.GroupKey // of the slot's group; unset where it only deletes
	policy types.UID
	sent   time.Time
	// Of releaseSlot: whose slot, and the claim that is given back; nil: it was none any more.
	group *group
	claim *claim
}

// answer is what came of a call.
type answer struct {
	call
	seen *record // the Lease as it is now; nil: not known, or gone
	gone bool    // there is none
	err  error   // nil: it was done
}

// errConflict is wrapped by the answer of a call that came too late: somebody else has
// changed the Lease.
var errConflict = errors.New("somebody else was faster")

func (p *planner) call(now time.Time, g *group, v verb, s *slot) *call {
	s.busy = true
	c := call{verb: v, slot: s.record, least: p.latest + 1, era: p.era, sent: now}
	if s.refused >= mostRefused {
		c.verb, c.wanted, c.least = lookSlot, v, s.version
		if s.past {
			c.least = 0
		}
	}
	if g != nil {
		c.key, c.policy = g.key, g.policy.UID
	}
	if s.gone {
		c.slot.uid, c.slot.version = "", 0
	}
	p.calls = append(p.calls, c)
	p.stats.calls[c.verb]++
	return &p.calls[len(p.calls)-1]
}

// answered takes over what came of a call.
func (p *planner) answered(now time.Time, a answer) {
	faulty := a.err != nil && !errors.Is(a.err, errConflict)
	p.health.heard(a.verb, a.sent, a.err, faulty)
	if a.verb == probeReads || a.verb == probeWrites {
		return
	}
	g := p.groups[a.slot.id]
	s := p.slots.get(a.slot.id, a.slot.n)
	s.busy = false
	p.compare(a)
	switch {
	case a.seen != nil:
		p.saw(now, *a.seen, false)
	case a.gone && !s.gone && s.version == a.slot.version:
		s.gone, s.seen = true, now
		if g != nil && g.claims[s.n] != nil {
			delete(g.claims, s.n)
			p.stats.lost++
		}
	}
	if a.verb == lookSlot {
		s.refused = 0
	} else if errors.Is(a.err, errConflict) {
		s.refused++
	}
	if a.err != nil {
		s.failures++
		s.retry = now.Add(p.pause(s.failures, faulty))
		p.stats.failed(a)
	}
	if g == nil {
		return
	}
	if !faulty {
		g.spread.measured(now.Sub(a.sent))
	}
	p.settle(now, g, a)
}

// mostRefused is how many conflicts in a row, with nothing seen of the Lease between them, let
// it be read: the watch should have told what it is by then.
const mostRefused = 2

// storeWentBack is said where the versions of Leases show that.
const storeWentBack = "the store of the API server has gone back to an earlier state, as after a restore: the Leases of slots are read anew"

// compare finds out whether the store has gone back to an earlier state. In one that goes
// on, a Lease that was read is not older than it was seen before, and one that was written is
// newer than all that was. Else what is seen of the others will look older than it is, and the
// watch, which was opened at a version that is still to come, tells nothing.
func (p *planner) compare(a answer) {
	if a.seen == nil || a.seen.version >= a.least || a.era != p.era {
		return
	}
	p.era++
	p.latest = a.seen.version
	for id := range p.slots {
		for s := range p.slots.all(id) {
			s.past = true
		}
	}
	p.relist = true
}

// settle takes over what the answer means for the group.
func (p *planner) settle(now time.Time, g *group, a answer) {
	n := a.slot.n
	switch {
	case a.verb == lookSlot:
		g.taking = g.taking && a.wanted != takeSlot
	case a.verb == takeSlot:
		g.taking = false
		switch {
		case a.err == nil:
			g.spread.served()
			g.taken++
			p.hold(g, n, a.sent)
		case errors.Is(a.err, errConflict):
			g.conflicts++
			g.rivals = now
			g.spread.collided()
		default:
			g.fresh = true // others fail as well: they shall not come back all at once
		}
	case a.verb == renewSlot && a.err == nil && g.claims[n] != nil:
		p.hold(g, n, a.sent)
	}
	// A claim that ran out, or was given back, while its answer was awaited is none any
	// more: adopt sees to the Lease.
}

// hold notes that the slot is this node's for some time from the moment in which that
// was asked.
func (p *planner) hold(g *group, n int, sent time.Time) {
	s := p.slots.get(g.id, n)
	if s.gone || s.holder != p.holder {
		return // it was lost again before the answer came
	}
	jitter := time.Duration(p.rand.Int64N(int64(renewEvery / 4)))
	g.claims[n] = &claim{n: n, until: sent.Add(holds), renew: sent.Add(renewEvery - jitter)}
}

// pause is the time until the next try after so many failures.
func (p *planner) pause(failures int, faulty bool) time.Duration {
	if !faulty {
		return leastRetry // until then the watch has told what is the case
	}
	longest := min(mostRetry, leastRetry<<min(failures, 6))
	return longest/2 + time.Duration(p.rand.Int64N(int64(longest/2)))
}

// saw takes over what was seen of a Lease, by the watch or in an answer. It tells
// whether there is anything to decide now: that somebody renewed a slot is no reason.
func (p *planner) saw(now time.Time, r record, gone bool) bool {
	before, was, by := time.Time{}, false, ""
	if s := p.slots.get(r.id, r.n); s != nil {
		before, was, by = s.freeAt(), s.gone || !now.Before(s.freeAt()), s.holder
	}
	p.latest = max(p.latest, r.version)
	s := p.slots.put(now, r, gone)
	g := p.groups[r.id]
	if s == nil || g == nil {
		return false
	}
	if (gone || s.holder != p.holder) && g.claims[r.n] != nil {
		delete(g.claims, r.n) // somebody deleted the Lease or took it by force
		p.stats.lost++
	}
	if was && !gone && !before.IsZero() {
		g.spread.taken(now.Sub(before))
		if s.holder != p.holder && g.missing() > 0 {
			g.spread.passed(s.holder)
			g.rivals = now
			g.attempt = time.Time{} // drawn anew for the next slot
		}
	}
	return was || gone || by != s.holder
}

// listed takes over the list of all slots at one version.
func (p *planner) listed(now time.Time, all []record, version uint64) {
	p.known, p.latest = true, max(p.latest, version)
	there := map[string]bool{}
	for _, r := range all {
		there[r.name] = true
		p.saw(now, r, false)
	}
	for id := range p.slots {
		for s := range p.slots.all(id) {
			if !there[s.name] && !s.gone && (s.past || s.version <= version) {
				r := s.record
				r.version = version
				p.saw(now, r, true)
			}
		}
	}
	p.health.reads.works()
}
