package leases

import (
	"context"
	"errors"
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
	sweepSlot   verb = "sweep"   // delete the Lease of a dead holder
)

// call is a write and its result.
type call struct {
	verb    verb
	group   *group // nil for sweepSlot
	n       int
	name    string
	version version
	since   time.Time // when this node took the slot; zero means when the call is sent

	sent time.Time
	made *coordinationv1.Lease
	err  error
}

// call returns a call for a slot. seen is the version of the slot's Lease, or zero if it has none.
func (g *group) call(v verb, n int, seen version) *call {
	return &call{verb: v, group: g, n: n, name: leaseName(g.demand, n), version: seen}
}

var errNoSlot = errors.New("the Lease in the answer is not that of a slot: something has changed it on its way into the API server")

// make sends the calls, waits for their answers, and applies these.
func (c *Claimer) make(ctx context.Context, calls []*call) {
	var running errgroup.Group
	running.SetLimit(mostCalls)
	for _, one := range calls {
		c.stats.Calls[string(one.verb)]++
		running.Go(func() error {
			one.sent = time.Now()
			if one.since.IsZero() {
				one.since = one.sent
			}
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
		lease := newLease(one.group.demand, one.n, one.version, c.options.Holder, one.since, one.sent)
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
	claims := one.verb == takeSlot || one.verb == renewSlot
	var s slot
	if claims && one.err == nil {
		var n int
		if s, _, n = readSlot(one.made, now); n < 0 {
			one.err = errNoSlot
		}
	}
	line := &c.health.write
	if one.verb == takeSlot {
		line = &c.health.take
	}
	switch {
	case one.err == nil, late:
		c.health.write = nil // also after a take, which shows that writes succeed
		c.health.note(line, nil, one.sent, now)
	default:
		c.stats.Failures++
		c.health.note(line, fmt.Errorf("%s the Lease %s: %w", one.verb, one.name, one.err), one.sent, now)
	}
	if late {
		c.stats.Conflicts++
	}
	switch {
	case claims && one.err == nil:
		g.claims[one.n] = &claim{
			n: one.n, version: s.version, since: one.since, until: one.sent.Add(claimValid),
			renew: one.sent.Add(renewEvery - rand.N(renewEvery/4)),
		}
	case one.verb == renewSlot && late:
		delete(g.claims, one.n) // another node holds it, or this node does by a write whose answer was lost
		c.stats.Lost++
		c.stray = true
	case one.verb == renewSlot:
		if claim := g.claims[one.n]; claim != nil {
			claim.renew = now.Add(leastRetry/2 + rand.N(leastRetry))
		}
	case one.verb == takeSlot && late:
	case one.err == nil, apierrors.IsNotFound(one.err):
	default:
		c.stray = true // the write may have succeeded
	}
}

// renewals returns the calls that renew the claims that are due.
func (c *Claimer) renewals(now time.Time) (calls []*call) {
	for _, g := range c.groups {
		for _, claim := range g.claims {
			if !now.Before(claim.renew) {
				one := g.call(renewSlot, claim.n, claim.version)
				one.since = claim.since
				calls = append(calls, one)
			}
		}
	}
	return calls
}
