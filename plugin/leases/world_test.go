package leases

import (
	"fmt"
	"maps"
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
	w.events.add(w.now+d, do)
}

// run lets the time pass until done, or for so long.
func (w *world) run(most time.Duration, done func() bool) {
	for end := w.now + most; w.events.before(end) && !done(); {
		e := w.events.next()
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

// apply is the API server.
func (w *world) apply(holder string, c call) answer {
	a := answer{call: c}
	name := c.slot.name
	now, there := w.leases[name]
	switch {
	case c.verb == probeReads || c.verb == probeWrites:
		return a
	case c.verb == lookSlot:
		if a.gone = !there; there {
			a.seen = &now
		}
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

// restoreLater has the API server's store go back, after some time, to what it is now.
// Between are a million other writes, so that no version stands for two states.
func (w *world) restoreLater(after time.Duration) {
	version, leases := w.version, maps.Clone(w.leases)
	w.version += 1_000_000
	w.after(after, func() {
		w.version, w.leases, w.freeSince = version, leases, map[string]time.Duration{}
		for _, n := range w.nodes {
			n.blind = true
		}
	})
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
