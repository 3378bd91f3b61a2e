package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Pods, their groups and policies change at random. The counters of each group always equal a recount of all pods:
// every change of a pod updates them.
func TestCountersOfGroupsEqualARecount(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := newNode(t, Settings{MaxConcurrent: 1 + rng.IntN(6), StartTimeout: time.Minute})
		for step := range 300 {
			n.randomChange(rng)
			before := n.l.Groups(n.now)
			n.l.groups.counted = false
			require.Equal(t, n.l.Groups(n.now), before, "seed %d, step %d", seed, step)
			n.requireCounted(before)
		}
	}
}

// randomChange does a random thing to one pod, or to all.
func (n *node) randomChange(rng *rand.Rand) {
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
			t.End(n.now, []reasons.Reason{reasons.Ready, reasons.Deleted, reasons.Exited}[rng.IntN(3)])
		}
	case 5:
		n.l.Finished(n.now, uid)
	case 6:
		n.l.Lookup(uid).SetStalled(n.now, n.now)
	case 7:
		n.pass(time.Duration(rng.IntN(20)) * time.Second)
	default:
		some := int64(rng.IntN(4))
		n.l.SetPolicies(n.now, map[string]GroupLimits{
			"x": {Starting: Bound{Pods: &some, Requests: Amounts{"cpu": 100 * some}}, Claims: []*Claims{{}, nil, nil, nil}[rng.IntN(4)]},
			"y": {Running: Bound{Requests: Amounts{"memory": some}}, Pacer: Pacer{Step: int(some), MaxStagger: 5}},
		}, PodGroups{UID: uid, Groups: groups})
	}
}

// requireCounted compares the views of the groups with their pods.
func (n *node) requireCounted(views []GroupView) {
	n.t.Helper()
	want := map[GroupKey]GroupView{}
	for _, p := range n.l.groups.pods {
		require.True(n.t, p.ticket != nil || p.running, "%s neither has a ticket nor runs", p.uid)
		require.True(n.t, n.l.tickets.live(p.uid) != nil || p.running || p.in == nil, "%s is not needed for any count", p.uid)
		require.True(n.t, p.ticket == nil || p.ticket.pod == p, p.uid)
		for _, in := range p.in {
			v := want[in.group.key]
			if p.ticket != nil && p.ticket.state == Waiting {
				v.Waiting++
			}
			if p.ticket != nil && p.ticket.state == Starting {
				v.Starting.Pods++
			}
			if p.running {
				v.Running.Pods++
			}
			if p.running && p.ready {
				v.Ready++
			}
			want[in.group.key] = v
		}
	}
	for _, v := range views {
		w := want[v.Key]
		require.Equal(n.t, []any{w.Waiting, w.Starting.Pods, w.Running.Pods, w.Ready}, []any{v.Waiting, v.Starting.Pods, v.Running.Pods, v.Ready}, v.Key)
		delete(want, v.Key)
	}
	require.Empty(n.t, want)
}
