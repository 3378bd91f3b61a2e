package leases

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Policy is what a [Claimer] has to know of a StartPolicy of the scope Cluster.
type Policy struct {
	// UID is that of the object: it owns the Leases.
	UID types.UID
	// Slots is how many pods of each group may start at a time in the cluster. Below 0 it
	// counts as 0, above 1000 as that.
	Slots int
	// OpenAfter is how long the API server may be away until nobody is held. Zero or
	// less: 30 s.
	OpenAfter time.Duration
}

const defaultOpenAfter = 30 * time.Second

func (p Policy) openAfter() time.Duration {
	if p.OpenAfter <= 0 {
		return defaultOpenAfter
	}
	return p.OpenAfter
}

// demand is what a group needs now.
type demand struct {
	key                             throttle.GroupKey
	policy                          Policy
	limit, starting, wants, waiting int
}

// claim is a slot that this node holds.
type claim struct {
	n int
	// until is when this node has to stop to start pods on it, before anybody else may
	// take it.
	until, renew time.Time
}

// group is what this node does for one group of a policy.
type group struct {
	demand
	id     string
	fresh  bool // it has just begun to want more than it has
	wanted bool
	claims map[int]*claim
	// spent is how many of the claims a start has used. While others may wait for a slot,
	// each is for one start.
	spent   int
	idle    time.Time // since when claims are neither spent nor wanted
	spread  spread
	attempt time.Time // when to try to take a slot; zero: not yet drawn
	taking  bool      // an answer is awaited
	rivals  time.Time // when another was last seen to take a slot that this node wanted
	offered int       // what the limiter was told
	told    bool      // it was told
	// For View.
	conflicts, taken uint64
}

func newGroup(id string, nodes int) *group {
	return &group{id: id, claims: map[int]*claim{}, spread: newSpread(nodes)}
}

// missing is how many more claims it could use.
func (g *group) missing() int {
	return max(0, min(g.starting+g.wants, g.limit)-len(g.claims))
}

// needed tells whether there is anything to do for it.
func (g *group) needed() bool {
	return len(g.claims) > 0 || g.taking || g.starting > 0 || g.wants > 0 || g.waiting > 0
}

// update takes over a demand.
func (g *group) update(d demand) {
	g.demand = d
	switch {
	case g.missing() == 0:
		g.wanted, g.attempt = false, time.Time{}
	case !g.wanted:
		g.wanted, g.fresh = true, true
	}
}

// surplus gives the claims to give back now: those whose start has ended, unless a slot
// is to spare for whoever wants one; those that a lower limit has no more; and those
// that nobody uses for a while.
func (g *group) surplus(now time.Time, spare bool) []*claim {
	if g.starting > g.spent {
		g.idle = time.Time{}
	}
	g.spent = min(len(g.claims), max(g.spent, g.starting))
	over := g.spent - min(g.starting, g.spent)
	if spare && g.highest() < g.limit {
		g.spent -= over
		over = 0
	}
	unused := len(g.claims) - g.spent
	switch {
	case unused == 0:
		g.idle = time.Time{}
	case g.highest() >= g.limit:
		over += min(unused, g.above())
	case g.idle.IsZero():
		g.idle = now
	case now.Sub(g.idle) >= g.patience():
		over += unused
		g.idle = time.Time{}
	}
	return g.last(over)
}

// patience is for how long a claim is kept that nobody uses.
func (g *group) patience() time.Duration {
	if g.waiting == 0 {
		return unusedAlone
	}
	return unusedWaiting
}

// remind has the claims looked at again that nobody uses.
func (g *group) remind(alarm *alarm) {
	if !g.idle.IsZero() {
		alarm.at(g.idle.Add(g.patience()))
	}
}

// above is how many of its claims the limit has no more.
func (g *group) above() (n int) {
	for slot := range g.claims {
		if slot >= g.limit {
			n++
		}
	}
	return n
}

// last gives so many claims, those of the highest slots, which a lower limit has no
// more, first.
func (g *group) last(most int) []*claim {
	var all []*claim
	for _, c := range g.claims {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *claim) int { return cmp.Compare(b.n, a.n) })
	return all[:min(most, len(all))]
}

func (g *group) highest() int {
	highest := -1
	for n := range g.claims {
		highest = max(highest, n)
	}
	return highest
}

// offer gives what the limiter may start at a time. It admits the next start in the
// moment in which one ends, so while others may wait it is offered no more than is
// unused.
func (g *group) offer(spare bool) int {
	unused := len(g.claims) - g.spent
	switch {
	case spare && g.highest() < g.limit:
		return len(g.claims)
	case unused > 0:
		return g.starting + unused
	default:
		return 0
	}
}
