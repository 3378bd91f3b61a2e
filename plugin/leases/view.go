package leases

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// View is the state of a [Claimer], and what it has counted since its Run began. Views share memory and
// must not be changed. The zero value means that Run has not begun.
type View struct {
	// Groups are the groups that hold or need slots, sorted by key.
	Groups []GroupView
	// Fault is why OpenPolicies hold no pod, or nil.
	Fault        error
	OpenPolicies []string
	// Calls counts the requests by purpose: look, take, renew, release, sweep.
	Calls map[string]uint64
	// Conflicts counts the requests that came too late, Failures those that failed, and Lost the slots
	// that could not be renewed in time or that another node took.
	Conflicts, Failures, Lost uint64
}

// GroupView is the state of one group.
type GroupView struct {
	Key throttle.GroupKey
	// Held is how many slots this node holds, and Wanted how many more it could use.
	Held, Wanted int
}

// View returns the state after the last pass. It does not block.
func (c *Claimer) View() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

// show sets what View returns, logs each fault once, and when it is over or has no effect any more, and calls OpenChanged.
func (c *Claimer) show() {
	v := c.stats
	v.Calls = maps.Clone(v.Calls)
	for _, g := range c.groups {
		v.Groups = append(v.Groups, GroupView{Key: g.key, Held: len(g.claims), Wanted: g.missing()})
		if g.offered < 0 {
			v.Fault = c.health.fault()
			v.OpenPolicies = append(v.OpenPolicies, g.key.Policy)
		}
	}
	slices.Sort(v.OpenPolicies)
	v.OpenPolicies = slices.Compact(v.OpenPolicies)
	slices.SortFunc(v.Groups, func(a, b GroupView) int {
		return cmp.Or(strings.Compare(a.Key.Policy, b.Key.Policy), strings.Compare(a.Key.Group, b.Key.Group))
	})
	c.mu.Lock()
	before := c.view
	c.view = v
	c.mu.Unlock()
	if fault := c.health.fault(); (fault != nil) != c.faulty {
		c.faulty = fault != nil
		if c.faulty {
			c.options.Log.WithError(fault).Warn("cannot take or renew slots of StartPolicies of the scope Cluster; trying again")
		} else {
			c.options.Log.Info("the fault with slots of the scope Cluster is over, or no pod needs a slot now")
		}
	}
	switch {
	case slices.Equal(before.OpenPolicies, v.OpenPolicies):
	case len(v.OpenPolicies) == 0:
		c.options.OpenChanged(nil, nil)
	default:
		c.options.OpenChanged(v.OpenPolicies, v.Fault)
	}
}
