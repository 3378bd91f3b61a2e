package leases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verb is the purpose of a request.
type verb string

const (
	lookSlots   verb = "look"    // list all
	takeSlot    verb = "take"    // create the Lease, or replace it as it was seen
	renewSlot   verb = "renew"   // replace the Lease as it was seen
	releaseSlot verb = "release" // delete the Lease as it was seen
)

// call is a write and its result.
type call struct {
	verb    verb
	group   *group
	n       int
	name    string
	version version

	sent time.Time
	made *coordinationv1.Lease
	err  error
}

// call returns a call for a slot. The version is that of its Lease, or zero if there is none.
func (g *group) call(v verb, n int, seen version) *call {
	return &call{verb: v, group: g, n: n, name: leaseName(g.demand, n), version: seen}
}

// make sends the calls, waits for their answers, and applies these.
func (c *Claimer) make(ctx context.Context, calls []*call) {
	var running errgroup.Group
	running.SetLimit(mostCalls)
	for _, one := range calls {
		c.stats.Calls[string(one.verb)]++
		running.Go(func() error {
			one.sent = time.Now()
			one.made, one.err = c.send(ctx, one)
			return nil
		})
	}
	_ = running.Wait() // each call keeps its own error
	for _, one := range calls {
		c.answered(one)
	}
}

func (c *Claimer) send(ctx context.Context, one *call) (made *coordinationv1.Lease, err error) {
	api := c.options.API
	switch one.verb {
	case takeSlot, renewSlot:
		lease := newLease(one.group.demand, one.n, one.version, c.options.Holder, one.sent)
		if (one.version == version{}) {
			return api.Create(ctx, lease, metav1.CreateOptions{})
		}
		return api.Update(ctx, lease, metav1.UpdateOptions{})
	default:
		return nil, api.Delete(ctx, one.name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &one.version.uid, ResourceVersion: &one.version.resource},
		})
	}
}

// answered applies the result of a call.
func (c *Claimer) answered(one *call) {
	now, g := time.Now(), one.group
	late := apierrors.IsConflict(one.err) || apierrors.IsAlreadyExists(one.err) ||
		apierrors.IsNotFound(one.err) && one.version != version{} // without a version, the namespace is missing
	var fault error
	switch {
	case late:
		c.stats.Conflicts++
	case one.err != nil:
		c.stats.Failures++
		fault = fmt.Errorf("%s the Lease %s: %w", one.verb, one.name, one.err)
	}
	c.health.note(&c.health.write, fault, one.sent, now)
	switch {
	case one.err == nil && one.made != nil:
		g.claims[one.n] = &claim{
			n: one.n, version: version{one.made.UID, one.made.ResourceVersion}, until: one.sent.Add(holds),
			renew: one.sent.Add(renewEvery - rand.N(renewEvery/4)),
		}
	case one.verb == renewSlot && late:
		delete(g.claims, one.n) // another node holds it, or this node does by a write whose answer was lost
		c.stats.Lost++
	case one.verb == renewSlot:
		if claim := g.claims[one.n]; claim != nil {
			claim.renew = now.Add(leastRetry/2 + rand.N(leastRetry))
		}
	}
}

// renewals returns the calls that renew the claims that are due.
func (c *Claimer) renewals(now time.Time) (calls []*call) {
	for _, g := range c.groups {
		for _, claim := range g.claims {
			if !now.Before(claim.renew) {
				calls = append(calls, g.call(renewSlot, claim.n, claim.version))
			}
		}
	}
	return calls
}
