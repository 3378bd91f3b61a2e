package leases

import (
	"errors"
	"math/rand/v2"
	"time"
)

// simNode is a node with its limiter, reduced to one group.
type simNode struct {
	w            *world
	name         string
	p            *planner
	generation   int // of its daemon
	rate         float64
	offset       time.Duration
	cursor       int // into the log
	due, listing bool
	alarm        time.Duration
	frozen       time.Duration   // until then
	cut          bool            // no way to the API server
	dead         bool            // no daemon
	blind        bool            // its watch is open at a version that the API server does not have
	waiting      []time.Duration // since when
	admitted     []time.Duration
	starting     int
	claims       int
}

// clock is what the node takes for the time.
func (n *simNode) clock() time.Time {
	return time.Unix(1_000_000, 0).Add(n.offset + time.Duration(float64(n.w.now)*n.rate))
}

// boot starts a daemon that knows nothing but the starts under way.
func (n *simNode) boot() {
	n.generation++
	n.dead, n.claims, n.due, n.listing, n.alarm = false, 0, false, false, 0
	n.p = newPlanner(n.name, func() int { return len(n.w.nodes) }, rand.New(rand.NewPCG(n.w.rand.Uint64(), n.w.rand.Uint64())))
	n.step()
}

func (n *simNode) crash(away time.Duration) {
	n.dead = true
	n.generation++
	n.w.after(away, n.boot)
}

// arrive has so many pods come.
func (n *simNode) arrive(pods int) {
	for range pods {
		n.waiting = append(n.waiting, n.w.now)
	}
	if !n.dead && n.frozen <= n.w.now {
		n.step()
	}
}

// freeze has the daemon do nothing for some time, as one that gets no CPU. It starts no
// pod meanwhile; what it does first afterwards is to look at the clock.
func (n *simNode) freeze(long time.Duration) {
	n.frozen = n.w.now + long
	n.mine(0, n.step)
}

// mine runs something later, if the daemon is the same still.
func (n *simNode) mine(d time.Duration, do func()) {
	generation := n.generation
	n.w.after(d, func() {
		switch {
		case n.generation != generation:
		case n.frozen > n.w.now:
			n.mine(n.frozen-n.w.now, do)
		default:
			do()
		}
	})
}

var errAway = errors.New("the API server does not answer")

// list reads all Leases, as a watcher does at its begin and after a failure.
func (n *simNode) list() {
	if n.listing {
		return
	}
	n.listing = true
	n.mine(n.w.upTo(n.w.watchDelay), func() {
		n.listing = false
		if n.cut || n.w.down {
			n.p.health.reads.fails(n.clock(), errAway)
			n.listing = true
			n.mine(time.Second, func() { n.listing = false; n.list() })
			n.step()
			return
		}
		var all []record
		for _, r := range n.w.leases {
			all = append(all, r)
		}
		n.p.listed(n.clock(), all, n.w.version)
		n.cursor, n.due, n.blind = len(n.w.log), false, false
		n.step()
	})
}

// notify delivers what has changed, in order, some time later.
func (n *simNode) notify() {
	if n.due || n.dead || !n.p.known {
		return
	}
	n.due = true
	n.mine(n.w.watchDelay/4+n.w.upTo(n.w.watchDelay*3/4), func() {
		n.due = false
		if n.cut || n.w.down {
			n.p.known = false
			n.list()
			return
		}
		decide := false
		if n.blind {
			n.cursor = len(n.w.log)
		}
		for ; n.cursor < len(n.w.log); n.cursor++ {
			decide = n.p.saw(n.clock(), n.w.log[n.cursor].record, n.w.log[n.cursor].gone) || decide
		}
		n.p.health.contact()
		if decide {
			n.step()
		}
	})
}

func (n *simNode) step() {
	d := demand{key: n.w.key, policy: n.w.policy, limit: n.w.limit, starting: n.starting, waiting: len(n.waiting), wants: len(n.waiting)}
	n.p.want([]demand{d})
	if n.p.relist {
		n.p.relist, n.p.known = false, false
	}
	switch active := n.p.active(); {
	case !active:
		n.p.known = false
	case !n.p.known:
		n.list()
	case n.cursor < len(n.w.log):
		n.notify()
	}
	calls, offers, next := n.p.step(n.clock())
	for _, o := range offers {
		n.claims = o.starts
	}
	for _, c := range calls {
		n.send(c)
	}
	if !next.IsZero() {
		in := time.Duration(float64(next.Sub(n.clock()))/n.rate) + time.Microsecond
		if at := n.w.now + in; n.alarm <= n.w.now || at < n.alarm {
			n.alarm = at
			n.mine(in, func() {
				if n.w.now >= n.alarm {
					n.step()
				}
			})
		}
	}
	n.admit()
}

// admit starts whoever may.
func (n *simNode) admit() {
	admitted := false
	for len(n.waiting) > 0 && (n.claims < 0 || n.starting < n.claims) {
		n.admitted = append(n.admitted, n.w.now)
		n.waiting = n.waiting[1:]
		n.starting++
		n.w.admissions++
		admitted = true
		n.w.after(n.w.starts(), func() {
			n.starting--
			if !n.dead && n.frozen <= n.w.now {
				n.admit() // as the limiter does, before anybody else hears of it
				n.step()
			}
		})
	}
	if admitted && !n.dead {
		n.mine(0, n.step)
	}
}

// send makes a call; what is lost on the way is an error after the time-out.
func (n *simNode) send(c call) {
	c.sent = n.clock()
	n.mine(n.w.upTo(n.w.latency)/2, func() {
		lost := n.cut || n.w.down
		var a answer
		if !lost {
			a = n.w.apply(n.name, c)
		}
		// The way back can be cut, too.
		n.mine(n.w.upTo(n.w.latency)/2, func() {
			if !lost && !n.cut {
				n.p.answered(n.clock(), a)
				n.step()
				return
			}
			n.mine(callTimeout, func() {
				n.p.answered(n.clock(), answer{call: c, err: errAway})
				n.step()
			})
		})
	})
}
