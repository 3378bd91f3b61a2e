package leases

import (
	"math/rand/v2"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// The times of a slot. Whoever holds one stops to start pods holds after it sent the
// last renewal that was answered; the others take it lasts after they saw the last
// change. So clocks need not agree, and may run half as fast again as another.
const (
	lasts = 30 * time.Second
	// mostLasts is what a Lease is taken to last that says more: no version of the daemon
	// does, and a slot must not be lost for longer by what somebody else has written.
	mostLasts = 2 * lasts
	holds     = 20 * time.Second
	// renewEvery leaves a second try before holds is over.
	renewEvery = 10 * time.Second

	// A claim that no start uses is given back after this time: one that was refused
	// for another reason is back within 15 s.
	unusedWaiting, unusedAlone = 20 * time.Second, time.Second
	// spareGaps is for how many gaps a slot has to be free for nobody to want it.
	spareGaps = 20
	// A Lease that nobody renewed for so long after it has expired is deleted.
	sweepAfter = 10 * time.Minute

	leastRetry, mostRetry = time.Second, 15 * time.Second
	leastProbe            = 5 * time.Second
	perNode               = 10 * time.Millisecond
	mostJitter            = time.Second
)

// planner decides which slots this node takes, renews and gives back. It asks nobody,
// does not block, and takes the time as a parameter; what is to be asked are its calls.
// It is not safe for concurrent use.
type planner struct {
	holder string
	rand   *rand.Rand
	nodes  func() int

	groups map[string]*group // by id
	slots  cache
	known  bool   // the slots were listed, and are watched
	relist bool   // they are to be listed and watched anew
	latest uint64 // the highest version that was seen, in this era
	era    int    // begins when the store goes back
	health health
	calls  []call
	stats  stats
}

func newPlanner(holder string, nodes func() int, r *rand.Rand) *planner {
	return &planner{holder: holder, nodes: nodes, rand: r, groups: map[string]*group{}, slots: cache{}, stats: stats{calls: map[verb]uint64{}}}
}

// offer is what the limiter is to be told.
type offer struct {
	key    throttle.GroupKey
	starts int
}

// want takes over what all groups need. A group that is absent needs nothing more.
func (p *planner) want(all []demand) {
	asked := map[string]bool{}
	for _, d := range all {
		id := identify(d.policy.UID, d.key)
		asked[id] = true
		g := p.groups[id]
		if g == nil {
			g = newGroup(id, p.nodes())
			p.groups[id] = g
		}
		g.update(d)
	}
	for id, g := range p.groups {
		if !asked[id] {
			g.update(demand{key: g.key, policy: g.policy})
		}
	}
}

// step decides what to do now. It gives the calls to make, what to tell the limiter,
// and when it wants to be called next; the zero time: when something happens.
func (p *planner) step(now time.Time) (calls []call, offers []offer, next time.Time) {
	p.calls = nil
	alarm := alarm{now: now}
	active := false
	for id, g := range p.groups {
		p.expire(now, g)
		free, age := p.free(now, g)
		// Slots are free that nobody seems to want.
		spare := len(free) > 0 && age >= spareGaps*g.spread.gap
		for _, c := range g.surplus(now, spare) {
			p.release(now, g, c)
		}
		g.spent = min(g.spent, len(g.claims), g.starting)
		p.renew(now, g, &alarm)
		p.adopt(now, g, &alarm)
		p.take(now, g, free, age, &alarm)
		g.remind(&alarm)
		active = active || g.needed()
		if o, changed := p.offer(now, g, spare, &alarm); changed {
			offers = append(offers, o)
		}
		if !g.needed() && g.offered == 0 && p.health.writes.err == nil {
			delete(p.groups, id)
		}
	}
	if p.known {
		p.sweep(now, &alarm)
	}
	p.slots.forget(func(id string) bool { return p.groups[id] != nil })
	switch {
	case active || p.health.writes.err != nil && len(p.groups) > 0:
		p.probe(now, &alarm)
	case len(p.groups) == 0:
		p.health.writes = line{} // whoever wants a slot next finds out
	}
	return p.calls, offers, alarm.next
}

// active tells whether any group needs the slots to be watched.
func (p *planner) active() bool {
	for _, g := range p.groups {
		if g.needed() {
			return true
		}
	}
	return false
}

// expire drops the claims that could not be renewed in time.
func (p *planner) expire(now time.Time, g *group) {
	for n, c := range g.claims {
		if !now.Before(c.until) {
			delete(g.claims, n)
			p.stats.expired++
		}
	}
	g.spent = min(g.spent, len(g.claims))
}

// slotOf gives the slot, made where nobody ever saw it.
func (p *planner) slotOf(g *group, n int) *slot {
	if s := p.slots.get(g.id, n); s != nil {
		return s
	}
	s := &slot{record: record{id: g.id, n: n, name: leaseName(g.key.Policy, g.id, n)}, gone: true}
	p.slots.set(s)
	return s
}

// offer tells what to tell the limiter, if that is not what it was told last.
func (p *planner) offer(now time.Time, g *group, spare bool, alarm *alarm) (offer, bool) {
	starts := g.offer(spare)
	if open, at := p.health.open(now, g.policy.openAfter()); open {
		starts = -1
	} else {
		alarm.at(at)
	}
	if g.policy.UID == "" || g.limit == 0 && !g.needed() {
		starts = 0
	}
	if g.told && starts == g.offered {
		return offer{}, false
	}
	g.offered, g.told = starts, true
	return offer{key: g.key, starts: starts}, true
}

// alarm is the earliest time that is still to come.
type alarm struct{ now, next time.Time }

func (a *alarm) at(t time.Time) {
	if t.After(a.now) && (a.next.IsZero() || t.Before(a.next)) {
		a.next = t
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// leave gives the calls that give back what no start uses. Nothing is to be asked of the
// planner afterwards.
func (p *planner) leave(now time.Time) []call {
	p.calls = nil
	for _, g := range p.groups {
		for _, c := range g.last(len(g.claims) - min(len(g.claims), g.starting)) {
			p.release(now, g, c)
		}
	}
	return p.calls
}
