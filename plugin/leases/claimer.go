package leases

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// A holder stops to start pods holds after it sent the last renewal that succeeded; the
	// others take the slot lasts after they saw the last change. So clocks need not agree,
	// and one may run half as fast again as another.
	lasts = 30 * time.Second
	holds = 20 * time.Second
	// mostLasts bounds what a Lease may say: no version of the daemon writes more, and
	// a Lease must not block a slot for longer.
	mostLasts = 2 * lasts
	// renewEvery leaves a second try before holds is over.
	renewEvery = 10 * time.Second

	// A claim that no start uses is given back after this time. A pod that was refused for
	// another reason is back within 15 s.
	unusedWaiting, unusedAlone = 20 * time.Second, time.Second
	// sweepAfter is the age at which a Lease is deleted that was not written meanwhile.
	sweepAfter = 10 * time.Minute

	// A node that lacks a slot looks for one about every pace, which grows with the cluster.
	leastPace, pacePerNode = 500 * time.Millisecond, 10 * time.Millisecond
	// firstTry is the part of the pace within which a node looks for its first slot.
	firstTry = 10

	callTimeout = 5 * time.Second
	mostCalls   = 8 // at a time
	// leastPass and mostPass are the times between two passes.
	leastPass, mostPass = 20 * time.Millisecond, 5 * time.Second
	lastWords           = 2 * time.Second
)

// Limiter is what a [Claimer] works for: a throttle.Limiter.
type Limiter interface {
	Groups(now time.Time) []throttle.GroupView
	SetClaims(now time.Time, key throttle.GroupKey, starts int)
}

// Options are the parts of a [Claimer]. All are needed.
type Options struct {
	// API is the way to the Leases of the daemon's namespace.
	API kube.Leases
	// Holder tells the daemons of the cluster apart, and stays the same when one is
	// started again.
	Holder string
	// Limiter says which claims are needed, and is called with how many starts they allow.
	Limiter Limiter
	// Nodes returns the size of the cluster, 0 while it is not known. It must not block.
	Nodes func() int
	// Unheld is called when the policies stop to hold pods because the API server cannot be used, with
	// the reason, and with nil when they hold pods again. It must not block.
	Unheld func(policies []string, why error)
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Claimer takes, renews and gives back the slots of the policies of the scope Cluster.
// Make it with New. Its methods are safe for concurrent use.
type Claimer struct {
	options Options
	wake    chan struct{} // holds one at most

	mu       sync.Mutex
	policies map[string]Policy
	view     View

	// Of Run alone.
	groups map[string]*group // by id
	slots  map[string]*slot  // as listed last, by name
	looked time.Time         // when they were listed
	stray  bool              // a Lease may be this node's though it has no claim on it
	health health
	faulty bool // the log says so
	stats  View // what is counted
}

// New returns a claimer; Run does its work.
func New(o Options) *Claimer {
	return &Claimer{options: o, wake: make(chan struct{}, 1), policies: map[string]Policy{}}
}

// SetPolicies says which policies of the scope Cluster there are, by name. The claims of
// one that is absent are given back. To be called before the limiter is told of a
// new one, which holds its pods until then. The map must not be changed afterwards. It
// does not block.
func (c *Claimer) SetPolicies(policies map[string]Policy) {
	c.mu.Lock()
	c.policies = policies
	c.mu.Unlock()
	c.Wake()
}

// Wake makes the claimer look at what the groups need: to be called when a start was
// admitted or ended, and when a pod joined the queue. It does not block.
func (c *Claimer) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run claims until ctx ends; then it gives back what no start uses, and keeps the rest
// for the next daemon of this node. It must not run twice at a time; called again, it
// finds its Leases anew.
func (c *Claimer) Run(ctx context.Context) {
	c.groups, c.slots, c.looked, c.health = map[string]*group{}, map[string]*slot{}, time.Time{}, health{}
	c.stats = View{Calls: map[string]uint64{}}
	timer := time.NewTimer(0)
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

// demands asks the limiter what the groups need.
func (c *Claimer) demands(now time.Time) map[string]demand {
	c.mu.Lock()
	policies := c.policies
	c.mu.Unlock()
	all := map[string]demand{}
	for _, v := range c.options.Limiter.Groups(now) {
		policy, known := policies[v.Key.Policy]
		if known && v.Limits.Claims {
			all[identify(policy.UID, v.Key)] = demand{
				key: v.Key, policy: policy, limit: min(max(policy.Slots, 0), mostSlots),
				starting: int(v.Starting.Pods), wants: v.Wants, waiting: v.Waiting,
			}
		}
	}
	return all
}

// pace is how often a node looks for a slot that it lacks.
func (c *Claimer) pace() time.Duration {
	return max(leastPace, time.Duration(c.options.Nodes())*pacePerNode)
}

// pass does all that is to be done now, waits for the answers, and gives the time until
// the next one.
func (c *Claimer) pass(ctx context.Context) time.Duration {
	now := time.Now()
	demands := c.demands(now)
	for id := range demands {
		if c.groups[id] == nil {
			c.groups[id] = &group{claims: map[int]*claim{}, scarce: true}
		}
	}
	c.expire(now)
	needed := false
	for id, g := range c.groups {
		d, asked := demands[id]
		if !asked {
			d = demand{key: g.key, policy: g.policy}
		}
		g.update(now, d, c.pace())
		needed = needed || g.needed()
	}
	if !needed {
		c.health = health{} // the next pod that needs a slot finds out whether a fault lasts
	}
	calls := c.giveBack(now)
	ctx, cancel := context.WithDeadline(ctx, c.deadline(now))
	defer cancel()
	if c.lookDue(now) {
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

// deadline is when a pass has to end: before a claim runs out, of which the limiter is to
// be told.
func (c *Claimer) deadline(now time.Time) time.Time {
	end := now.Add(callTimeout)
	for _, g := range c.groups {
		for _, claim := range g.claims {
			if claim.until.Before(end) {
				end = claim.until
			}
		}
	}
	return end
}

// giveBack returns the calls that give claims back. The limiter is told first: pods that it
// has admitted meanwhile keep theirs.
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
			calls = append(calls, g.call(releaseSlot, id, claim))
		}
		if !g.spare() {
			g.wait(now, c.pace(), true)
		}
	}
	return calls
}

// offer tells the limiter what it may start where that is not what it was told last.
func (c *Claimer) offer(now time.Time) {
	for _, g := range c.groups {
		starts := g.offer()
		if at := c.health.givesUp(g.policy.OpenAfter); g.policy.UID != "" && !at.IsZero() && !now.Before(at) {
			starts = -1
		}
		if !g.told || starts != g.offered {
			g.offered, g.told = starts, true
			c.options.Limiter.SetClaims(now, g.key, starts)
			c.Wake() // it may have admitted pods
		}
	}
}

// conclude tells the limiter, the log and View what has come of a pass, and gives the time
// until the next one.
func (c *Claimer) conclude(now time.Time) time.Duration {
	c.expire(now)
	c.offer(now)
	next := now.Add(mostPass)
	at := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	for id, g := range c.groups {
		for _, claim := range g.claims {
			at(claim.renew)
			at(claim.until)
		}
		if !g.idle.IsZero() {
			at(g.idle.Add(g.patience()))
		}
		if g.offered >= 0 && g.policy.UID != "" {
			at(c.health.givesUp(g.policy.OpenAfter))
		}
		if !g.needed() && g.offered == 0 {
			delete(c.groups, id)
		}
	}
	at(c.nextLook())
	c.show()
	return next.Sub(now)
}

// leave returns back what no start uses.
func (c *Claimer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	demands := c.demands(time.Now())
	var calls []*call
	for id, g := range c.groups {
		for _, claim := range g.remove(len(g.claims) - min(len(g.claims), demands[id].starting)) {
			calls = append(calls, g.call(releaseSlot, id, claim))
		}
	}
	c.make(ctx, calls)
}
