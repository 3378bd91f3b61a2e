package throttle

// group is what is counted of one group. It is there while any pod has a part in it,
// or claims were given to it.
type group struct {
	key     GroupKey
	limits  *limits // of its policy
	pods    int     // that have a part in it
	waiting int
	// starting are the pods that start, running those that were admitted and have not
	// finished; ready are of those.
	starting, running usage
	ready             int
	claims            int // below zero: any number
	// spent is how many starts were counted for it in the count spentAt.
	spent   int
	spentAt uint64
}

// paced is how many start as the pacer counts.
func (g *group) paced() int { return int(g.running.pods) - g.ready }

// runningHolds tells whether a bound of Running holds a pod that requests so much.
func (g *group) runningHolds(asks Amounts) (Held, bool) {
	b := &g.limits.running
	held, holds := b.exceeds(&g.running, asks)
	if !holds {
		return Held{}, false
	}
	held.Reason, held.Policy = PolicyRunning, g.key
	if alone, never := b.exceeds(&usage{}, asks); never {
		alone.Reason, alone.Policy = Unadmittable, g.key
		return alone, true
	}
	return held, true
}

// startingHolds tells the same of everything else; paced: also of the pacer.
func (g *group) startingHolds(asks Amounts, paced bool) (held Held, holds bool) {
	reason := PolicyStarting
	if held, holds = g.limits.starting.exceeds(&g.starting, asks); !holds && paced {
		reason = PolicyPacer
		held, holds = g.pacerHolds()
	}
	if !holds {
		reason = PolicyClaim
		held, holds = g.claimHolds()
	}
	if !holds {
		return Held{}, false
	}
	held.Reason, held.Policy = reason, g.key
	return held, true
}

func (g *group) pacerHolds() (Held, bool) {
	most, bounded := g.limits.given.Pacer.allows(g.ready)
	return Held{Measured: float64(g.paced()), Threshold: float64(most)}, bounded && g.paced() >= most
}

func (g *group) claimHolds() (Held, bool) {
	holds := g.limits.given.Claims && g.claims >= 0 && g.starting.pods >= int64(g.claims)
	return Held{Measured: float64(g.starting.pods), Threshold: float64(g.claims)}, holds
}

// left tells for each limit of the group, but the bounds of Running and the claims, how
// many more pods that request so much may start now, and how many such at a time; paced:
// also of the pacer.
func (g *group) left(asks Amounts, paced bool, tell func(more, most int64)) {
	g.limits.starting.left(&g.starting, asks, tell)
	if most, bounded := g.limits.given.Pacer.allows(g.ready); bounded && paced {
		more := max(0, int64(most-g.paced()))
		tell(more, min(int64(most), g.starting.pods+more))
	}
}

// claimsLeft tells the same of the claims.
func (g *group) claimsLeft(tell func(more, most int64)) {
	if g.limits.given.Claims && g.claims >= 0 {
		tell(max(0, int64(g.claims)-g.starting.pods), int64(g.claims))
	}
}

// groupLocked gives the group, and makes it where there is none.
func (l *Limiter) groupLocked(key GroupKey) *group {
	g := l.groups[key]
	if g == nil {
		g = &group{key: key, limits: noLimits}
		if of := l.policies[key.Policy]; of != nil {
			g.limits = of
		}
		l.groups[key] = g
	}
	return g
}

// dropGroupLocked forgets a group in which nobody has a part.
func (l *Limiter) dropGroupLocked(g *group) {
	if g.pods == 0 && g.claims == 0 {
		delete(l.groups, g.key)
	}
}
