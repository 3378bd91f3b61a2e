package leases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nextLook returns when to list the Leases again, or zero if nothing needs it.
func (c *Claimer) nextLook() (next time.Time) {
	for _, g := range c.groups {
		switch {
		case g.missing() > 0:
			next = sooner(next, g.next)
		case len(g.claims) > 0:
			next = sooner(next, c.looked.Add(renewEvery)) // to find out whether slots are free
		case g.offered < 0:
			next = sooner(next, c.health.retry)
		}
	}
	if c.stray {
		next = sooner(next, c.looked.Add(c.interval()))
	}
	if !next.IsZero() && next.Before(c.health.retry) {
		next = c.health.retry
	}
	return next
}

// look lists the Leases of all groups, and returns the calls that follow from them.
func (c *Claimer) look(ctx context.Context) (calls []*call) {
	sent := time.Now()
	c.stats.Calls[string(lookSlots)]++
	// With version 0, the API server answers from memory. The answer may be old, but then a write is
	// refused, because it names the version that it replaces.
	list, err := c.options.API.List(ctx, metav1.ListOptions{LabelSelector: SlotLabel, ResourceVersion: "0"})
	now := time.Now()
	if err != nil {
		c.stats.Failures++
		c.health.note(&c.health.read, fmt.Errorf("list the Leases of slots: %w", err), sent, now)
		return nil
	}
	c.health.note(&c.health.read, nil, sent, now)
	c.looked, c.stray = now, false
	slots, known := map[string]map[int]slot{}, map[string]*group{}
	for _, g := range c.groups {
		known[g.id] = g
	}
	for i := range list.Items {
		s, id, n := readSlot(&list.Items[i], now)
		if g := known[id]; n < 0 || g != nil && s.name != leaseName(g.demand, n) {
			continue
		}
		if before := c.slots[id][n]; before.version == s.version {
			s.seen = before.seen
		}
		if slots[id] == nil {
			slots[id] = map[int]slot{}
		}
		slots[id][n] = s
	}
	c.slots = slots
	for _, g := range c.groups {
		calls = append(calls, c.choose(now, g)...)
	}
	calls = append(calls, c.sweep(now)...)
	if len(calls) == 0 { // the next write shows whether a fault lasts
		takes, renews := c.writesSoon()
		if !takes {
			c.health.note(&c.health.take, nil, sent, now)
		}
		if !takes && !renews {
			c.health.note(&c.health.write, nil, sent, now)
		}
	}
	return calls
}

// choose takes slots for a group: first those that this node holds already, because an answer was lost or an earlier
// daemon took them, and then free ones.
func (c *Claimer) choose(now time.Time, g *group) (calls []*call) {
	missing, room := g.missing(), g.limit-len(g.claims)
	listed, taken := c.slots[g.id], map[int]bool{}
	for n := range g.claims {
		taken[n] = true
	}
	for n, s := range listed {
		if taken[n] || s.holder != c.options.Holder && s.free(now) {
			continue
		}
		taken[n] = true
		room--
		switch {
		case s.holder != c.options.Holder:
		case missing > 0 && n < g.limit:
			missing--
			calls = append(calls, g.call(takeSlot, n, s.version))
		default:
			calls = append(calls, g.call(releaseSlot, n, s.version))
		}
	}
	g.scarce = room <= 0
	if g.missing() == 0 || now.Before(g.next) {
		return calls
	}
	g.wait(now, c.interval(), len(g.claims) > 0)
	// It takes half of the free slots, so that the first node that looks leaves some for the others.
	most := min(missing, (room+1)/2)
	for _, n := range rand.Perm(g.limit) {
		if most <= 0 {
			break
		}
		if taken[n] {
			continue
		}
		calls = append(calls, g.call(takeSlot, n, listed[n].version))
		most--
		room--
	}
	g.scarce = room <= 0
	return calls
}

// sweep returns the call that deletes a Lease that was unchanged for long and that its group does not need.
func (c *Claimer) sweep(now time.Time) []*call {
	for id, slots := range c.slots {
		if g := c.groups[id]; g != nil && g.needed() {
			continue
		}
		for n, s := range slots {
			if now.Sub(s.seen) >= sweepAfter {
				return []*call{{verb: sweepSlot, n: n, name: s.name, version: s.version}}
			}
		}
	}
	return nil
}

// writesSoon reports whether there is a free slot to take, and whether there is one to renew.
func (c *Claimer) writesSoon() (takes, renews bool) {
	for _, g := range c.groups {
		takes, renews = takes || g.missing() > 0 && !g.scarce, renews || len(g.claims) > 0
	}
	return takes, renews
}
