package leases

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// world is a cluster whose time is simulated: planners on nodes with clocks of their
// own, and an API server that answers late, or not at all.
type world struct {
	t      testing.TB
	rand   *rand.Rand
	now    time.Duration
	events eventQueue
	seq    int
	policy Policy
	key    throttle.GroupKey
	id     string
	limit  int
	nodes  []*simNode
	down   bool // the API server

	// The API server's.
	version uint64
	leases  map[string]record
	log     []change

	// How long the API server's answers and events take to arrive, at most.
	latency, watchDelay time.Duration
	starts              func() time.Duration
	mostHeld            int
	admissions          int
	idle                time.Duration // of slots while somebody waited
	freed               int
	freeSince           map[string]time.Duration
	check               func()
}

type change struct {
	record
	gone bool
}

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
	waiting      []time.Duration // since when
	admitted     []time.Duration
	starting     int
	claims       int
}

type simEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type eventQueue []simEvent

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func newWorld(t testing.TB, seed uint64, nodes, limit int) *world {
	w := &world{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), limit: limit, key: throttle.GroupKey{Policy: "registry"},
		policy: Policy{UID: "uid"}, leases: map[string]record{}, freeSince: map[string]time.Duration{},
		latency: 10 * time.Millisecond, watchDelay: 40 * time.Millisecond,
	}
	w.starts = func() time.Duration { return 5*time.Second + w.upTo(20*time.Second) }
	w.id = identify(w.policy.UID, w.key)
	for i := range nodes {
		n := &simNode{w: w, name: fmt.Sprintf("node-%d", i), rate: 1}
		w.nodes = append(w.nodes, n)
		n.boot()
	}
	return w
}

func (w *world) upTo(most time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(most)))
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, simEvent{at: w.now + d, seq: w.seq, do: do})
}

// run lets the time pass until done, or for so long.
func (w *world) run(most time.Duration, done func() bool) {
	for end := w.now + most; len(w.events) > 0 && w.events[0].at <= end && !done(); {
		e := heap.Pop(&w.events).(simEvent)
		w.now = e.at
		e.do()
		if w.check != nil {
			w.check()
		}
	}
}

// held counts the claims that nodes rely on now, each by its own clock.
func (w *world) held() (held int) {
	for _, n := range w.nodes {
		if n.dead {
			continue
		}
		for _, g := range n.p.groups {
			for _, c := range g.claims {
				if n.clock().Before(c.until) {
					held++
				}
			}
		}
	}
	return held
}

func (w *world) waiting() (n int) {
	for _, node := range w.nodes {
		n += len(node.waiting)
	}
	return n
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
		n.cursor, n.due = len(n.w.log), false
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

// apply is the API server.
func (w *world) apply(holder string, c call) answer {
	a := answer{call: c}
	name := c.slot.name
	now, there := w.leases[name]
	switch {
	case c.verb == probeReads || c.verb == probeWrites:
		return a
	case c.slot.version == 0 && there, c.slot.version != 0 && there && now.version != c.slot.version:
		a.err = fmt.Errorf("%w: it is of %s", errConflict, now.holder)
		return a
	case c.slot.version != 0 && !there:
		a.gone = true
		if c.verb == takeSlot || c.verb == renewSlot {
			a.err = errConflict
		}
		return a
	}
	w.version++
	if c.verb == releaseSlot || c.verb == sweepSlot {
		delete(w.leases, name)
		w.freeSince[name] = w.now
		a.gone = true
		w.tell(change{record: withVersion(now, w.version), gone: true})
		return a
	}
	if since, freed := w.freeSince[name]; freed && c.verb == takeSlot {
		w.idle += w.now - since
		w.freed++
		delete(w.freeSince, name)
	}
	r := c.slot
	r.holder, r.uid, r.version, r.lasts = holder, types.UID(fmt.Sprint("uid-", name)), w.version, lasts
	w.leases[name] = r
	w.tell(change{record: r})
	a.seen = &r
	return a
}

func withVersion(r record, version uint64) record { r.version = version; return r }

func (w *world) tell(c change) {
	w.log = append(w.log, c)
	for _, n := range w.nodes {
		if n.p.active() {
			n.notify()
		}
	}
}

// neverMore has every moment checked.
func (w *world) neverMore() {
	w.check = func() {
		held := w.held()
		w.mostHeld = max(w.mostHeld, held)
		require.LessOrEqual(w.t, held, w.limit, "at %s", w.now)
	}
}
