package leases

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// mostCalls is how many requests are under way at a time.
	mostCalls = 8
	// leastLook is between two looks at what the groups need.
	leastLook = 20 * time.Millisecond
	// mostLook is after which a look is taken though nobody asked for it.
	mostLook = 5 * time.Second
	// watchOn is for how long the slots are watched after nobody needs one any more.
	watchOn = 5 * time.Minute
	// lastWords bounds what is asked at the end.
	lastWords = 2 * time.Second
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
	// Limiter needs the claims and is told of them.
	Limiter Limiter
	// Nodes gives the size of the cluster, 0 while it is not known. It must not block.
	Nodes func() int
	// Opened is told when the policies open because the API server cannot be used, with
	// the reason, and with nil when they are closed again. It must not block.
	Opened func(policies []string, why error)
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Claimer takes, renews and gives back the slots of the policies of the scope Cluster.
// Make it with New. Its methods are safe for concurrent use.
type Claimer struct {
	options Options
	store   store
	wake    chan struct{} // holds one at most

	mu       sync.Mutex
	policies map[string]Policy
	view     View

	// Of Run alone.
	planner *planner
	answers chan answer
	news    chan news
	calls   sync.WaitGroup
	free    chan struct{} // holds one for each request under way
	queue   []call
	looked  time.Time
	said    said
}

// New gives a claimer; Run does its work.
func New(o Options) *Claimer {
	return &Claimer{
		options: o, store: store{api: o.API, holder: o.Holder}, wake: make(chan struct{}, 1),
		policies: map[string]Policy{}, answers: make(chan answer), news: make(chan news, 100),
		free: make(chan struct{}, mostCalls),
	}
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

// Wake has the claimer look at what the groups need: to be called when a start was
// admitted or ended, and when somebody joined the queue. It does not block.
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
	c.planner = newPlanner(c.options.Holder, c.options.Nodes, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	c.queue, c.looked = nil, time.Time{}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer c.calls.Wait()
	defer cancel()
	watch := watching{watcher: watcher{api: c.options.API, tell: c.tell}}
	defer watch.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			watch.stop()
			c.leave(calls)
			return
		case <-c.wake:
		case <-timer.C:
		case a := <-c.answers:
			c.planner.answered(time.Now(), a)
		case n := <-c.news:
			if !c.heard(time.Now(), n) {
				continue
			}
		}
		now := time.Now()
		next := mostLook
		if now.Sub(c.looked) >= leastLook {
			c.looked = now
			c.planner.want(c.look(now))
		} else {
			next = leastLook
		}
		next = min(next, c.act(calls, now))
		if c.planner.relist {
			c.again(&watch)
		}
		watch.need(ctx, now, c.planner)
		timer.Reset(next)
	}
}

// look asks the limiter what the groups need.
func (c *Claimer) look(now time.Time) []demand {
	c.mu.Lock()
	policies := c.policies
	c.mu.Unlock()
	var all []demand
	for _, v := range c.options.Limiter.Groups(now) {
		policy, known := policies[v.Key.Policy]
		if !known || !v.Limits.Claims {
			continue
		}
		all = append(all, demand{
			key: v.Key, policy: policy, limit: min(policy.Slots, mostSlots),
			starting: int(v.Starting.Pods), wants: v.Wants, waiting: v.Waiting,
		})
	}
	return all
}

// mostSlots is how many slots a group has at most.
const mostSlots = 1000

// act does what is to be done now, and gives the time until the next look.
func (c *Claimer) act(calls context.Context, now time.Time) time.Duration {
	asked, offers, next := c.planner.step(now)
	for _, o := range offers {
		c.options.Limiter.SetClaims(now, o.key, o.starts)
	}
	if slices.ContainsFunc(asked, func(a call) bool { return a.verb == releaseSlot }) {
		var kept bool
		if asked, kept = c.planner.keepUsed(asked, c.look(now)); kept {
			c.Wake()
		}
	}
	c.queue = append(c.queue, asked...)
	c.start(calls)
	c.tellFaults()
	c.show()
	wait := mostLook
	if !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	return max(wait, leastLook)
}

// start makes the calls of the queue, so many at a time. The time of a call is that at
// which it is sent.
func (c *Claimer) start(ctx context.Context) {
	for len(c.queue) > 0 {
		select {
		case c.free <- struct{}{}:
		default:
			return
		}
		next := c.queue[0]
		c.queue = c.queue[1:]
		next.sent = time.Now()
		c.calls.Go(func() {
			a := c.store.make(ctx, next)
			<-c.free
			select {
			case c.answers <- a:
			case <-ctx.Done():
			}
		})
	}
}

// leave gives back what no start uses, and waits for the answers for a short time.
func (c *Claimer) leave(calls context.Context) {
	ctx, cancel := context.WithTimeout(calls, lastWords)
	defer cancel()
	now := time.Now()
	c.queue = nil
	c.planner.want(c.look(now))
	for _, call := range c.planner.leave(now) {
		c.calls.Go(func() { c.store.make(ctx, call) })
	}
	done := make(chan struct{})
	go func() { c.calls.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		case <-c.answers:
		case <-ctx.Done():
			return
		}
	}
}
