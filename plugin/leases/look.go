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
			next = earlier(next, g.next)
		case len(g.claims) > 0:
			next = earlier(next, c.looked.Add(renewEvery)) // to find out whether slots are free
		case g.offered < 0:
			next = earlier(next, c.health.retry)
		}
	}
	if c.stray {
		next = earlier(next, c.looked.Add(c.pace()))
	}
	if !next.IsZero() && next.Before(c.health.retry) {
		next = c.health.retry
	}
	return next
}

func (c *Claimer) lookDue(now time.Time) bool {
	at := c.nextLook()
	return !at.IsZero() && !now.Before(at)
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
	slots := make(map[string]*slot, len(list.Items))
	byGroup := map[string][]*slot{}
	for i := range list.Items {
		s, ok := readSlot(&list.Items[i], now)
		if !ok {
			continue
		}
		if before := c.slots[s.name]; before != nil && before.version == s.version {
			s.seen = before.seen
		}
		slots[s.name] = s
		byGroup[s.id] = append(byGroup[s.id], s)
	}
	c.slots = slots
	for id, g := range c.groups {
		calls = append(calls, c.choose(now, id, g, byGroup[id])...)
	}
	calls = append(calls, c.sweep(now)...)
	if len(calls) == 0 && !c.writesSoon() {
		c.health.note(&c.health.write, nil, sent, now) // the next write shows whether the fault lasts
	}
	return calls
}

// choose takes slots for a group: first those that this node holds already, because an answer was lost or an earlier
// daemon took them, and then free ones.
func (c *Claimer) choose(now time.Time, id string, g *group, listed []*slot) (calls []*call) {
	missing, room := g.missing(), g.limit-len(g.claims)
	taken := map[int]bool{}
	for n := range g.claims {
		taken[n] = true
	}
	for _, s := range listed {
		switch {
		case g.claims[s.n] != nil:
		case s.holder == c.options.Holder:
			taken[s.n] = true
			one := &call{verb: releaseSlot, group: g, n: s.n, name: s.name, version: s.version}
			if missing > 0 && s.n < g.limit {
				one.verb = takeSlot
				missing--
			}
			room--
			calls = append(calls, one)
		case !s.free(now):
			taken[s.n] = true
			room--
		}
	}
	g.scarce = room <= 0
	if g.missing() == 0 || now.Before(g.next) {
		return calls
	}
	g.wait(now, c.pace(), len(g.claims) > 0)
	// It takes half of the free slots, so that the first node that looks leaves some for the others.
	most := min(missing, (room+1)/2)
	for _, n := range rand.Perm(g.limit) {
		if most <= 0 {
			break
		}
		if taken[n] {
			continue
		}
		one := &call{verb: takeSlot, group: g, n: n, name: leaseName(g.key.Policy, id, n)}
		if s := c.slots[one.name]; s != nil {
			one.version = s.version
		}
		calls = append(calls, one)
		most--
		room--
	}
	g.scarce = room <= 0
	return calls
}

// sweep returns the call that deletes a Lease that was unchanged for long and that its group does not need.
func (c *Claimer) sweep(now time.Time) []*call {
	for _, s := range c.slots {
		if g := c.groups[s.id]; now.Sub(s.seen) >= sweepAfter && (g == nil || !g.needed()) {
			return []*call{{verb: sweepSlot, n: s.n, name: s.name, version: s.version}}
		}
	}
	return nil
}

// writesSoon reports whether there is a slot to renew or a free slot to take.
func (c *Claimer) writesSoon() bool {
	for _, g := range c.groups {
		if len(g.claims) > 0 || g.missing() > 0 && !g.scarce {
			return true
		}
	}
	return false
}
