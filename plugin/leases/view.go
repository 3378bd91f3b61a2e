package leases

import (
	"maps"
	"slices"
)

// View is the state of a [Claimer], and what it has counted since its Run began. Views share memory and
// must not be changed. The zero value means that Run has not begun.
type View struct {
	// Held is how many slots this node holds, and Wanted how many more it could use, by the policies that need any.
	Held, Wanted map[string]int
	// Fault is why OpenPolicies hold no pod, or nil.
	Fault        error
	OpenPolicies []string
	// Calls counts the requests by purpose: look, take, renew, release, sweep.
	Calls map[string]uint64
	// Conflicts counts the requests that came too late, Failures those that failed, and Lost the slots
	// that could not be renewed in time or that another node took.
	Conflicts, Failures, Lost uint64
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
	v.Calls, v.Held, v.Wanted = maps.Clone(v.Calls), map[string]int{}, map[string]int{}
	for _, g := range c.groups {
		v.Held[g.key.Policy] += len(g.claims)
		v.Wanted[g.key.Policy] += g.missing()
		if g.offered < 0 {
			v.Fault = c.health.fault()
			v.OpenPolicies = append(v.OpenPolicies, g.key.Policy)
		}
	}
	slices.Sort(v.OpenPolicies)
	v.OpenPolicies = slices.Compact(v.OpenPolicies)
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
