package leases

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// View is what a [Claimer] did last, and what it has counted since its Run began. Views share
// memory: what is in one must not be changed. The zero value: Run has not begun.
type View struct {
	// Groups are those that hold or want claims, in the order of their keys.
	Groups []GroupView
	// Open is why nobody is held by the policies of OpenPolicies; nil: they hold.
	Open         error
	OpenPolicies []string
	// Calls counts requests by what they were for: take, renew, release, sweep, look,
	// probe, dry-run. Watches and their lists are not counted.
	Calls map[string]uint64
	// Conflicts counts those of them that came too late, Failures those that failed;
	// Expired claims that could not be renewed in time, Lost those that were taken by force.
	Conflicts, Failures, Expired, Lost uint64
}

// GroupView is what is claimed for one group.
type GroupView struct {
	Key throttle.GroupKey
	// Slots is how many there are in the cluster; Held how many this node holds, Wanted
	// how many more it could use.
	Slots, Held, Wanted int
	// Contenders is the number of nodes that are believed to want a slot when one is free.
	Contenders float64
}

// View gives what the claimer does now. It does not block.
func (c *Claimer) View() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view
}

// show notes what View gives.
func (c *Claimer) show() {
	p := c.planner
	v := View{
		Conflicts: p.stats.conflicts, Failures: p.stats.failures, Expired: p.stats.expired, Lost: p.stats.lost,
		Calls: map[string]uint64{},
	}
	for verb, n := range p.stats.calls {
		v.Calls[string(verb)] = n
	}
	open := map[string]bool{}
	for _, g := range p.groups {
		v.Groups = append(v.Groups, GroupView{
			Key: g.key, Slots: g.limit, Held: len(g.claims), Wanted: g.missing(), Contenders: g.spread.contenders,
		})
		if g.offered < 0 {
			open[g.key.Policy], v.Open = true, p.health.fault()
		}
	}
	v.OpenPolicies = slices.Sorted(maps.Keys(open))
	slices.SortFunc(v.Groups, func(a, b GroupView) int {
		return cmp.Or(strings.Compare(a.Key.Policy, b.Key.Policy), strings.Compare(a.Key.Group, b.Key.Group))
	})
	c.mu.Lock()
	before := c.view
	c.view = v
	c.mu.Unlock()
	if !slices.Equal(before.OpenPolicies, v.OpenPolicies) {
		c.tellOpen(v)
	}
}

// tellOpen says that policies do not hold anybody, or that all do again.
func (c *Claimer) tellOpen(v View) {
	if len(v.OpenPolicies) == 0 {
		c.options.Log.Info("the policies of the scope Cluster hold again: the API server can be used")
		c.options.Opened(nil, nil)
		return
	}
	c.options.Log.WithError(v.Open).Warnf("the API server cannot be used: the policies %s hold nobody", strings.Join(v.OpenPolicies, ", "))
	c.options.Opened(v.OpenPolicies, v.Open)
}

// tellFaults says what goes wrong with the API server, once, and that it is over.
func (c *Claimer) tellFaults() {
	err := c.planner.health.fault()
	switch begun, over := c.said.news(err != nil); {
	case begun:
		c.options.Log.WithError(err).Warn("slots of the scope Cluster can neither be taken nor renewed; trying again")
	case over:
		c.options.Log.Info("slots of the scope Cluster can be taken again")
	}
}

// said remembers whether a fault was logged, so that it is logged once.
type said struct{ failed bool }

// news takes how things are, and tells whether a fault has begun, or is over.
func (s *said) news(failed bool) (begun, over bool) {
	before := s.failed
	s.failed = failed
	return failed && !before, before && !failed
}
