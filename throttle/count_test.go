package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever happens to pods, their groups and policies, what is kept of each group is what a
// count of all pods gives.
func TestCountersOfGroupsAreThoseOfARecount(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := newNode(t, Settings{MaxConcurrent: 1 + rng.IntN(6), StartTimeout: time.Minute})
		for step := range 300 {
			n.anything(rng)
			n.requireCounted(fmt.Sprintf("seed %d, step %d", seed, step))
		}
	}
}

// anything does something to some pod, or to all.
func (n *node) anything(rng *rand.Rand) {
	uid := fmt.Sprint(rng.IntN(30))
	var groups []Membership
	for _, policy := range []string{"x", "y"} {
		if rng.IntN(2) == 0 {
			groups = append(groups, Membership{
				Key: GroupKey{policy, fmt.Sprint(rng.IntN(2))}, Bypass: rng.IntN(5) == 0,
				Requests: Amounts{"cpu": int64(rng.IntN(5)) * 100, "memory": int64(rng.IntN(3))},
			})
		}
	}
	switch rng.IntN(9) {
	case 0, 1:
		n.l.Join(n.now, Request{UID: uid, Groups: groups}).Wait(n.now)
	case 2:
		n.l.Join(n.now, Request{UID: uid}).StartExempt(n.now)
	case 3:
		n.l.SetGroups(n.now, PodGroups{UID: uid, Groups: groups, Running: rng.IntN(2) == 0, Ready: rng.IntN(2) == 0})
	case 4:
		if t := n.l.Lookup(uid); t != nil {
			t.End(n.now, []Reason{Ready, Deleted, Exited}[rng.IntN(3)])
		}
	case 5:
		n.l.Finished(n.now, uid)
	case 6:
		n.l.SetStalled(n.now, uid, n.now)
	case 7:
		n.pass(time.Duration(rng.IntN(20)) * time.Second)
	default:
		some := int64(rng.IntN(4))
		n.l.SetPolicies(n.now, map[string]GroupLimits{
			"x": {Starting: Bound{Pods: &some, Requests: Amounts{"cpu": 100 * some}}, Claims: rng.IntN(4) == 0},
			"y": {Running: Bound{Requests: Amounts{"memory": some}}, Pacer: Pacer{Step: int(some), MaxStagger: 5}},
		}, PodGroups{UID: uid, Groups: groups})
	}
}

func (n *node) requireCounted(where string) {
	n.t.Helper()
	counted := map[GroupKey]*group{}
	for key, g := range n.l.groups {
		again := &group{key: key}
		again.follow(g.policy)
		counted[key] = again
	}
	for _, p := range n.l.pods {
		for _, in := range p.in {
			require.Contains(n.t, counted, in.group.key, where)
			counted[in.group.key].pods++
			counted[in.group.key].add(p.role(), in.asks, 1)
		}
	}
	for key, g := range n.l.groups {
		again := counted[key]
		require.Equal(n.t, []int{again.pods, again.waiting, again.starting, again.running, again.ready, again.stalledStarting, again.stalledPaced},
			[]int{g.pods, g.waiting, g.starting, g.running, g.ready, g.stalledStarting, g.stalledPaced}, "%s: %v", where, key)
		require.ElementsMatch(n.t, again.since, g.since, where)
		for b := range g.uses {
			require.Equal(n.t, again.uses[b].used, g.uses[b].used, "%s: %v %v", where, key, g.policy.bounds[b])
		}
	}
}
