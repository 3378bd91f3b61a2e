package leases

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// A holder stops starting pods when claimValid has passed since it sent the last renewal that
	// succeeded. Other nodes take the slot when leaseDuration has passed since they saw the last change.
	// So clocks need not agree, and one may run half as fast again as another.
	leaseDuration = 30 * time.Second
	claimValid    = 20 * time.Second
	// renewEvery leaves time for a second attempt before claimValid has passed.
	renewEvery = 10 * time.Second

	// A claim that no start uses is given back after this time. A pod that was refused for
	// another reason is retried within 15 s.
	unusedWaiting, unusedAlone = 20 * time.Second, time.Second
	// sweepAfter is how long a Lease must be unchanged before it can be swept.
	sweepAfter = 10 * time.Minute

	// A node that lacks a slot looks for one about once per interval, which grows with the cluster.
	leastInterval, intervalPerNode = 500 * time.Millisecond, 10 * time.Millisecond
	// A node first looks for a slot within the interval divided by firstTry.
	firstTry = 10

	callTimeout = 5 * time.Second
	mostCalls   = 8 // at the same time
	// leastPass and mostPass are the times between two passes.
	leastPass, mostPass = 20 * time.Millisecond, 5 * time.Second
	releaseTimeout      = 2 * time.Second
)

// Limiter is the part of a throttle.Limiter that a [Claimer] uses.
type Limiter interface {
	Groups(now time.Time) []throttle.GroupView
	SetClaims(now time.Time, key throttle.GroupKey, starts int)
}

// Options configure a [Claimer]. All are required.
type Options struct {
	// API reads and writes the Leases of the daemon's namespace.
	API kube.Leases
	// Holder identifies the daemon in the cluster. It stays the same when the daemon restarts.
	Holder string
	// Limiter reports what its groups need, and is called with how many pods the claims let start.
	Limiter Limiter
	// Nodes returns the number of nodes in the cluster, and a guess that is not too low while it is not known. It must not
	// block.
	Nodes func() int
	// OpenChanged is called when other policies than before hold no pod because the API server cannot be used: with
	// their names and the reason, or with nothing if all hold pods again. It must not block.
	OpenChanged func(open []string, why error)
	// Log receives each fault once.
	Log logrus.FieldLogger
}

// Claimer takes, renews and gives back the slots of the policies of the scope Cluster.
// Make one with [New]. Its methods are safe for concurrent use.
type Claimer struct {
	options Options
	wake    chan struct{} // has one element if Run has work

	mu   sync.Mutex
	view View

	// Only the goroutine of Run uses these.
	groups map[string]*group       // by id
	slots  map[string]map[int]slot // as listed last, by the id of the group and the number
	looked time.Time               // when the Leases were last listed
	stray  bool                    // this node may hold a Lease without a claim
	health health
	faulty bool // the fault was logged
	stats  View // the counters
}

// New returns a Claimer. Run does its work.
func New(o Options) *Claimer {
	return &Claimer{options: o, wake: make(chan struct{}, 1)}
}

// Wake makes the claimer check what the groups need. Call it when a start was admitted or ended, when a
// pod joined the queue, and when the policies have changed. It does not block.
func (c *Claimer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run takes and renews slots until ctx ends. Then it gives back those that no start uses, and leaves
// the rest for the next daemon of this node. Run can be called again after it returned, but not twice
// at the same time.
func (c *Claimer) Run(ctx context.Context) {
	c.groups, c.slots, c.looked, c.health = map[string]*group{}, nil, time.Time{}, health{}
	c.stats = View{Calls: map[string]uint64{}}
	c.Wake() // not by an expired timer: many of them at once crash the race detector in a bubble of synctest
	timer := time.NewTimer(mostPass)
	defer timer.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			c.leave(context.WithoutCancel(ctx))
			return
		case <-c.wake:
			if rest := leastPass - time.Since(last); rest > 0 {
				timer.Reset(rest)
				continue
			}
		case <-timer.C:
		}
		last = time.Now()
		timer.Reset(max(leastPass, c.pass(ctx)))
	}
}

// demands returns what the groups of the limiter need, by the id of the group.
func (c *Claimer) demands(now time.Time) map[string]demand {
	all := map[string]demand{}
	for _, v := range c.options.Limiter.Groups(now) {
		if claims := v.Limits.Claims; claims != nil {
			owner := types.UID(claims.Owner)
			id := identify(owner, v.Key)
			all[id] = demand{
				asked: true, id: id, key: v.Key, owner: owner, openAfter: claims.OpenAfter, limit: min(max(claims.Slots, 0), mostSlots),
				starting: int(v.Starting.Pods), wants: v.Wants, waiting: v.Waiting, inForce: v.Claims,
			}
		}
	}
	return all
}

// interval returns the time between two lists of a node that lacks a slot.
func (c *Claimer) interval() time.Duration {
	return max(leastInterval, time.Duration(c.options.Nodes())*intervalPerNode)
}

// pass does everything that is due, waits for the answers, and returns the time until the next pass.
func (c *Claimer) pass(ctx context.Context) time.Duration {
	now := time.Now()
	demands := c.demands(now)
	for id, d := range demands {
		if c.groups[id] == nil && (d.needed() || d.inForce != 0) {
			c.groups[id] = &group{claims: map[int]*claim{}, scarce: true}
		}
	}
	c.expire(now)
	needed := false
	for id, g := range c.groups {
		d, asked := demands[id]
		if !asked {
			d = demand{id: id, key: g.key, owner: g.owner, openAfter: g.openAfter}
		}
		g.update(now, d, c.interval())
		needed = needed || g.needed()
	}
	if !needed { // the next pod that needs a slot finds out whether a fault lasts
		c.health.since = time.Time{}
		if !c.stray {
			c.health = health{}
		}
	}
	calls := c.giveBack(now)
	ctx, cancel := context.WithDeadline(ctx, c.deadline(now))
	defer cancel()
	if due := c.nextLook(); !due.IsZero() && !now.Before(due) {
		calls = append(calls, c.look(ctx)...)
	}
	c.make(ctx, append(calls, c.renewals(now)...))
	return c.conclude(time.Now())
}

// expire drops the claims that could not be renewed in time.
func (c *Claimer) expire(now time.Time) {
	for _, g := range c.groups {
		for n, claim := range g.claims {
			if !now.Before(claim.until) {
				delete(g.claims, n)
				c.stats.Lost++
			}
		}
	}
}

// deadline returns when a pass must end: before a claim runs out, because then the limiter must be
// called.
func (c *Claimer) deadline(now time.Time) time.Time {
	end := now.Add(callTimeout)
	for _, g := range c.groups {
		for _, claim := range g.claims {
			end = sooner(end, claim.until)
		}
	}
	return end
}

// giveBack returns the calls that give claims back. It first takes them from the limiter. Pods that
// this has admitted in the meantime keep their claims.
func (c *Claimer) giveBack(now time.Time) (calls []*call) {
	surplus := map[string][]*claim{}
	for id, g := range c.groups {
		if over := g.surplus(now); len(over) > 0 {
			surplus[id] = over
		}
	}
	c.offer(now)
	if len(surplus) == 0 {
		return nil
	}
	demands := c.demands(now)
	for id, over := range surplus {
		g := c.groups[id]
		kept := min(len(over), max(0, demands[id].starting-len(g.claims)))
		for _, claim := range over[:kept] {
			g.claims[claim.n] = claim
		}
		for _, claim := range over[kept:] {
			calls = append(calls, g.call(releaseSlot, claim.n, claim.version))
		}
		if !g.spare() {
			g.wait(now, c.interval(), true)
		}
	}
	return calls
}

// offer calls the limiter for each group in which the number of pods that may start has changed. If a policy was deleted
// and made again, there may be two groups with one key: the limiter has the group of the newer policy, and only that counts.
func (c *Claimer) offer(now time.Time) {
	asked := map[throttle.GroupKey]bool{}
	for _, g := range c.groups {
		asked[g.key] = asked[g.key] || g.asked
	}
	for _, g := range c.groups {
		if g.replaced = !g.asked && asked[g.key]; g.replaced {
			g.offered, g.isSet = 0, false
			continue
		}
		starts := g.offer()
		if at := c.health.givesUp(g.openAfter); !at.IsZero() && !now.Before(at) {
			starts = -1
		}
		if !g.isSet || starts != g.offered {
			g.offered, g.isSet = starts, true
			c.options.Limiter.SetClaims(now, g.key, starts)
			c.Wake() // it may have admitted pods
		}
	}
}

// conclude reports the result of a pass to the limiter, the log and View, and returns the time until
// the next pass.
func (c *Claimer) conclude(now time.Time) time.Duration {
	c.expire(now)
	c.offer(now)
	next := sooner(now.Add(mostPass), c.nextLook())
	for id, g := range c.groups {
		for _, claim := range g.claims {
			next = sooner(next, sooner(claim.renew, claim.until))
		}
		if !g.idle.IsZero() {
			next = sooner(next, g.idle.Add(g.keepsUnused()))
		}
		if g.offered >= 0 && !g.replaced {
			next = sooner(next, c.health.givesUp(g.openAfter))
		}
		if !g.needed() && g.offered == 0 && !c.stray {
			delete(c.groups, id)
		}
	}
	c.show()
	return next.Sub(now)
}

// sooner returns the earlier of two times. A zero time means none, and does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// leave gives back the slots that no start uses.
func (c *Claimer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	demands := c.demands(time.Now())
	var calls []*call
	for id, g := range c.groups {
		for _, claim := range g.remove(len(g.claims) - min(len(g.claims), demands[id].starting)) {
			calls = append(calls, g.call(releaseSlot, claim.n, claim.version))
		}
	}
	c.make(ctx, calls)
}
