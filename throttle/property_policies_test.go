package throttle

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
)

// stepPolicies does one thing with policies.
func (p *player) stepPolicies() {
	switch n := p.rng.IntN(32); {
	case n >= 26:
		p.letUp(p.anyone())
	case n >= 20:
		p.tryStart(p.anyone())
	case n < 4:
		p.setPolicies(p.randomPolicies())
	case n < 8:
		p.setGroups(p.randomUID(), p.randomGroups())
	case n < 12:
		p.setRunning(p.randomUID(), p.randomGroups(), p.rng.IntN(2) == 0)
	case n < 16:
		p.finished(p.randomUID())
	default:
		p.setClaims(p.randomKey(), p.rng.IntN(4)-1)
	}
}

func (p *player) randomKey() GroupKey {
	return []GroupKey{{"a", ""}, {"a", ""}, {"a", "x"}, {"b", ""}, {"b", ""}, {"c", "x"}}[p.rng.IntN(6)]
}

func (p *player) randomAmounts(most int64) Amounts {
	all := Amounts{}
	for _, resource := range []string{"cpu", "memory"} {
		if p.rng.IntN(2) == 0 {
			all[resource] = p.rng.Int64N(most)
		}
	}
	return all
}

func (p *player) randomGroups() (groups []Membership) {
	if p.rng.IntN(8) == 0 {
		return []Membership{}
	}
	for range []int{0, 1, 1, 1, 2, 3}[p.rng.IntN(6)] {
		in := Membership{Key: p.randomKey(), Requests: p.randomAmounts(400), Bypass: p.rng.IntN(6) == 0}
		if !slices.ContainsFunc(groups, func(o Membership) bool { return o.Key == in.Key }) {
			groups = append(groups, in)
		}
	}
	return groups
}

func (p *player) randomPolicies() map[string]GroupLimits {
	bound := func(least int64) (b Bound) {
		if p.rng.IntN(2) == 0 {
			n := least + p.rng.Int64N(4)
			b.Pods = &n
		}
		if p.rng.IntN(3) == 0 {
			b.Requests = p.randomAmounts(1000)
		}
		return b
	}
	all := map[string]GroupLimits{}
	for _, name := range []string{"a", "b", "c"} {
		if p.rng.IntN(5) == 0 {
			continue
		}
		limits := GroupLimits{Starting: bound(0), Claims: p.rng.IntN(5) == 0}
		if p.rng.IntN(2) == 0 {
			limits.Running = bound(p.rng.Int64N(3))
		}
		switch p.rng.IntN(6) {
		case 0:
			limits.Pacer = Pacer{Kind: Exponential, MinInitial: 1 + p.rng.IntN(3), Multiplier: 0.5 + 2*p.rng.Float64(), MaxStagger: p.rng.IntN(6)}
		case 1:
			limits.Pacer = Pacer{Kind: Linear, Step: 1 + p.rng.IntN(3), MaxStagger: p.rng.IntN(6)}
		}
		all[name] = limits
	}
	return all
}

// drainPolicies ends and finishes all that start and run, again and again: then nobody
// is left whom a bound of those that run holds, unless it exceeds that alone. For
// what comes after, nothing runs for ever.
func (p *player) drainPolicies() {
	for range len(p.in(Waiting)) + 1 {
		for _, e := range p.in(Starting) {
			p.end(e, Ready)
		}
		for _, uid := range slices.Sorted(maps.Keys(p.members)) {
			p.finished(uid)
		}
		p.advance(p.now)
	}
	for _, e := range p.in(Waiting) {
		runs, _ := p.holds(e.uid)
		require.NotContains(p.t, runs, PolicyRunning, "%s is left, and nothing runs", e.uid)
	}
	free := maps.Clone(p.policies)
	for name, limits := range free {
		limits.Running = Bound{}
		free[name] = limits
	}
	p.setPolicies(free)
}
