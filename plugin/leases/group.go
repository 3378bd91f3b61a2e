package leases

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// demand is what a group needs now.
type demand struct {
	asked                           bool   // the limiter has the group
	id                              string // of the group, in the names of the Leases
	key                             throttle.GroupKey
	owner                           types.UID     // of the Leases: the UID of the policy
	openAfter                       time.Duration // without the API server
	limit, starting, wants, waiting int
	inForce                         int // the argument of the last SetClaims; 0 if there was none
}

// needed reports whether a pod of the group starts or waits.
func (d demand) needed() bool { return d.starting > 0 || d.wants > 0 || d.waiting > 0 }

// claim is a slot that this node holds.
type claim struct {
	n       int
	version version
	since   time.Time
	// until is when this node must stop starting pods on it, before another node may take it.
	until, renew time.Time
}

// group is the state of one group of a policy on this node.
type group struct {
	demand
	claims map[int]*claim
	// spent is how many of the claims a start has used. While other nodes may lack a slot, a
	// claim is good for one start.
	spent   int
	scarce  bool      // no slot was free at the last list
	lacks   bool      // it needs more claims than it has
	next    time.Time // when it may next take a slot
	idle    time.Time // when its claims became unused; zero if all are used
	offered int       // the last argument of SetClaims
	isSet   bool      // SetClaims was called
	// replaced: the policy was deleted and made again, and the limiter's group of this key is one of the newer policy.
	replaced bool
}

// missing returns how many more claims the group could use.
func (g *group) missing() int { return max(0, min(g.starting+g.wants, g.limit)-len(g.claims)) }

// needed reports whether there is work for the group.
func (g *group) needed() bool {
	return len(g.claims) > 0 || g.demand.needed()
}

// update sets the demand. If pods come on all nodes at once, each node begins at a random moment.
func (g *group) update(now time.Time, d demand, interval time.Duration) {
	g.demand = d
	lacks := g.missing() > 0
	if lacks && !g.lacks && !g.next.After(now) {
		g.next = now.Add(rand.N(interval / firstTry))
	}
	g.lacks = lacks
}

// wait draws the moment of the next attempt. A node that holds a slot, or has just given one back, waits longer, so
// that nodes without a slot go first.
func (g *group) wait(now time.Time, interval time.Duration, served bool) {
	g.next = now.Add(interval/2 + rand.N(interval/2))
	if served {
		g.next = g.next.Add(interval / 2)
	}
}

// spare reports whether the next start may use the claim of one that ended, because other nodes find free slots.
func (g *group) spare() bool { return !g.scarce && g.above() == 0 }

// above returns how many claims are on slots above the limit.
func (g *group) above() (n int) {
	for slot := range g.claims {
		if slot >= g.limit {
			n++
		}
	}
	return n
}

// surplus removes and returns the claims to give back now: those whose start has ended, unless there are free slots;
// those above the limit; and those that no start has used for a while.
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
	case now.Sub(g.idle) >= g.keepsUnused():
		ended += unused
		g.idle = time.Time{}
	}
	return g.remove(ended)
}

// keepsUnused returns how long a claim that no start uses is kept.
func (g *group) keepsUnused() time.Duration {
	if g.waiting == 0 {
		return unusedAlone
	}
	return unusedWaiting
}

// remove removes at most this many claims, those with the highest slots first, and returns them.
func (g *group) remove(most int) (removed []*claim) {
	slots := slices.Sorted(maps.Keys(g.claims))
	for _, n := range slots[max(0, len(slots)-most):] {
		removed = append(removed, g.claims[n])
		delete(g.claims, n)
	}
	g.spent = min(g.spent, g.starting, len(g.claims))
	return removed
}

// offer returns how many pods the limiter may have starting. The limiter admits the next start at the
// moment in which one ends. So while other nodes may lack a slot, only unused claims are offered.
func (g *group) offer() int {
	unused := len(g.claims) - min(max(g.spent, g.starting), len(g.claims))
	switch {
	case g.limit == 0 && !g.needed():
		return 0
	case g.spare():
		return len(g.claims)
	case unused > 0:
		return g.starting + unused
	default:
		return 0
	}
}
