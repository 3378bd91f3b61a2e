package leases

import (
	"cmp"
	"math/rand/v2"
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
	// OpenAfter is how long the API server may be away until the policy holds no pod.
	OpenAfter time.Duration
}

// demand is what a group needs now.
type demand struct {
	key                             throttle.GroupKey
	policy                          Policy
	limit, starting, wants, waiting int
}

// claim is a slot that this node holds.
type claim struct {
	n       int
	version version
	since   time.Time
	// until is when this node has to stop to start pods on it, before another may take it.
	until, renew time.Time
}

// group is what this node does for one group of a policy.
type group struct {
	demand
	claims map[int]*claim
	// spent is how many of the claims a start has used. While others may lack a slot, each
	// claim is for one start.
	spent   int
	scarce  bool      // no slot was free when the Leases were listed last
	lacks   bool      // it could use more claims than it has
	next    time.Time // when it may try to take one
	idle    time.Time // since when it has claims that no start uses; zero: it has none
	offered int       // what the limiter was told
	told    bool
}

// missing is how many more claims it could use.
func (g *group) missing() int { return max(0, min(g.starting+g.wants, g.limit)-len(g.claims)) }

// needed reports whether there is anything to do for it.
func (g *group) needed() bool {
	return len(g.claims) > 0 || g.starting > 0 || g.wants > 0 || g.waiting > 0
}

// update takes over a demand. Where a pod of each node comes at once, each node begins at a moment of its own.
func (g *group) update(now time.Time, d demand, pace time.Duration) {
	g.demand = d
	lacks := g.missing() > 0
	if lacks && !g.lacks && !g.next.After(now) {
		g.next = now.Add(rand.N(pace / firstTry))
	}
	g.lacks = lacks
}

// wait draws the moment of the next try. A node that holds a slot, or has just given one back, lets those try first
// that have none.
func (g *group) wait(now time.Time, pace time.Duration, served bool) {
	g.next = now.Add(pace/2 + rand.N(pace/2))
	if served {
		g.next = g.next.Add(pace / 2)
	}
}

// spare reports whether ended starts may leave their claims to the next ones: others find a free slot, too.
func (g *group) spare() bool { return !g.scarce && g.above() == 0 }

// above is how many of its claims a lower limit does not have any more.
func (g *group) above() (n int) {
	for slot := range g.claims {
		if slot >= g.limit {
			n++
		}
	}
	return n
}

// surplus takes out the claims to give back now: those whose start has ended, unless there are slots to spare, those
// that the limit does not have any more, and those that no start has used for a while.
func (g *group) surplus(now time.Time) []*claim {
	g.spent = min(len(g.claims), max(g.spent, g.starting))
	ended := g.spent - min(g.starting, g.spent)
	if g.spare() {
		g.spent -= ended
		ended = 0
	}
	unused := len(g.claims) - g.spent
	switch {
	case unused == 0:
		g.idle = time.Time{}
	case g.above() > 0:
		ended += min(unused, g.above())
	case g.idle.IsZero():
		g.idle = now
	case now.Sub(g.idle) >= g.patience():
		ended += unused
		g.idle = time.Time{}
	}
	return g.remove(ended)
}

// patience is for how long a claim is kept that no start uses.
func (g *group) patience() time.Duration {
	if g.waiting == 0 {
		return unusedAlone
	}
	return unusedWaiting
}

// remove takes out at most this many claims, those of the highest slots first.
func (g *group) remove(most int) []*claim {
	all := make([]*claim, 0, len(g.claims))
	for _, c := range g.claims {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *claim) int { return cmp.Compare(b.n, a.n) })
	all = all[:min(most, len(all))]
	for _, c := range all {
		delete(g.claims, c.n)
	}
	g.spent = min(g.spent, g.starting, len(g.claims))
	return all
}

// offer returns what the limiter may start at a time. It admits the next start in the
// moment in which one ends, so while others may lack a slot it is offered no more than is
// unused.
func (g *group) offer() int {
	unused := len(g.claims) - min(max(g.spent, g.starting), len(g.claims))
	switch {
	case g.policy.UID == "" || g.limit == 0 && !g.needed():
		return 0
	case g.spare():
		return len(g.claims)
	case unused > 0:
		return g.starting + unused
	default:
		return 0
	}
}
