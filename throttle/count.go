package throttle

import (
	"slices"
	"time"
)

// group is what is counted of one group. It is there while any pod is in it, or claims
// were given to it.
type group struct {
	key    GroupKey
	policy *policy
	claims int // below zero: any number
	loan   loan

	// What its pods are, kept by pod.count.
	pods                          int
	uses                          []use // by the bounds of the policy
	waiting, starting             int
	running, ready                int
	stalledStarting, stalledPaced int         // without progress: of those that start; of those that run and are not ready
	since                         []time.Time // those that start do

	// Of one scan.
	scan   uint64
	taken  int // so many it takes as started
	behind int // so many it has found held
}

// use is how much of a bound is used.
type use struct {
	used, most int64
	// Of one scan: what it keeps for those before; closed: nobody behind gets any of it.
	kept   int64
	closed bool
}

// role is what a pod counts as.
type role struct {
	waiting, starting, running, ready, stalled bool
	since                                      time.Time // it starts
}

// role gives what the pod is now.
func (p *pod) role() role {
	r := role{running: p.running, ready: p.running && p.ready, stalled: !p.stuckSince.IsZero()}
	if t := p.ticket; t != nil && t.state == Starting {
		r.starting, r.since, r.stalled = true, t.admitted, !t.stalled.IsZero()
	} else if t != nil {
		r.waiting = true
	}
	return r
}

// counts tells whether it counts against the bounds for a reason.
func (r role) counts(reason Reason) bool {
	switch reason {
	case PolicyRunning:
		return r.running
	case PolicyPacer:
		return r.running && !r.ready
	default:
		return r.starting
	}
}

// count counts the pod as something else than before, in all its groups.
func (p *pod) count(as role) {
	if as == p.counted {
		return
	}
	for i := range p.in {
		in := &p.in[i]
		in.group.add(p.counted, in.asks, -1)
		in.group.add(as, in.asks, 1)
		in.group.setMost()
	}
	p.counted = as
}

// add counts n pods more that are something, and ask for so much.
func (g *group) add(r role, asks []int64, n int) {
	for b, amount := range asks {
		if r.counts(g.policy.bounds[b].reason) {
			g.uses[b].used += int64(n) * amount
		}
	}
	count := func(counter *int, counts bool) {
		if counts {
			*counter += n
		}
	}
	count(&g.waiting, r.waiting)
	count(&g.starting, r.starting)
	count(&g.running, r.running)
	count(&g.ready, r.ready)
	count(&g.stalledStarting, r.starting && r.stalled)
	count(&g.stalledPaced, r.running && !r.ready && r.stalled)
	switch {
	case r.starting && n > 0:
		g.since = append(g.since, r.since)
	case r.starting:
		i := slices.Index(g.since, r.since)
		g.since = slices.Delete(g.since, i, i+1)
	}
}

// follow makes the group, in which no pod is counted, follow a policy.
func (g *group) follow(p *policy) {
	g.policy, g.uses = p, make([]use, len(p.bounds))
	g.setMost()
}

// setMost sets what the bounds allow now.
func (g *group) setMost() {
	for b, bound := range g.policy.bounds {
		most := bound.most
		switch bound.reason {
		case PolicyClaim:
			most = int64(g.claims)
		case PolicyPacer:
			starting, bounded := g.policy.limits.Pacer.Allows(g.ready)
			if most = int64(starting); !bounded {
				most = anyNumber
			}
		}
		if most < 0 {
			most = anyNumber
		}
		g.uses[b].most = most
	}
}

// paced is how many start as the pacer counts.
func (g *group) paced() int { return g.running - g.ready }
