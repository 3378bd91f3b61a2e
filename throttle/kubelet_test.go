package throttle

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// kubelet plays kubelet and the gate of one node against a limiter, on a clock of its own. A refused pod comes back
// after 10 to 15 seconds, or when its back-off is over. A pod with a reservation reaches its container a moment later,
// and waits there until its deadline.
type kubelet struct {
	t    *testing.T
	l    *Limiter
	rng  *rand.Rand
	now  time.Time
	todo todo
	pods map[string]*simPod
	left int // pods that have not started
	// deadlines are the times at which a wait in the gate reached its end.
	deadlines []time.Time
	expired   int // the number of these that were refused
	admitted  map[reasons.Reason]int
	mostAbove int // most starts above the limit at a time
	actions   int
	pulls     time.Duration // how long images are pulled; zero: hardly any time
	room      time.Duration // pods wait in the waiting room, and ask so often; zero: there is none, and they are refused
	places    int           // how many waits in the gate began
	emptied   time.Time     // since when a slot is empty, pods wait and none starts; zero: that is not so
	empty     time.Duration // for how long that was so, at most
}

// simPod is one pod of the play.
type simPod struct {
	uid     string
	flow    string
	prio    int32
	works   time.Duration // how long it uses CPU, from its admission
	needs   *simPod       // the pod that must be ready before this one, if any
	groups  []Membership
	kind    string   // of its start
	backOff *backOff // nil if no container of the pod ran before
	waiting bool     // in the gate
	began   time.Time
	ended   time.Time
	started bool
}

// backOff is kubelet's for a container that ran before: it makes the container again no sooner than so long after the
// end of the earlier one, and doubles the time with each try.
type backOff struct {
	ended time.Time
	least time.Duration
}

// tries reports whether kubelet makes the container now.
func (b *backOff) tries(now time.Time) bool {
	if now.Sub(b.ended) < b.least {
		return false
	}
	b.least = min(max(2*b.least, 10*time.Second), 5*time.Minute)
	return true
}

type action struct {
	at  time.Time
	seq int
	do  func()
}

type todo []action

func (d todo) Len() int { return len(d) }
func (d todo) Less(i, j int) bool {
	return d[i].at.Before(d[j].at) || (d[i].at.Equal(d[j].at) && d[i].seq < d[j].seq)
}
func (d todo) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *todo) Push(x any)   { *d = append(*d, x.(action)) } //nolint:errcheck,forcetypeassert // only actions are pushed
func (d *todo) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func newKubelet(t *testing.T, seed uint64, s Settings) *kubelet {
	t.Helper()
	return &kubelet{
		t: t, l: New(t0, s), rng: rand.New(rand.NewPCG(seed, 1)), now: t0,
		pods: map[string]*simPod{}, admitted: map[reasons.Reason]int{},
	}
}

func (k *kubelet) after(d time.Duration, do func()) {
	k.actions++
	heap.Push(&k.todo, action{at: k.now.Add(d), seq: k.actions, do: do})
}

func (k *kubelet) between(from, to time.Duration) time.Duration {
	return from + time.Duration(k.rng.Int64N(int64(to-from)))
}

// create lets a pod appear on the node after some time.
func (k *kubelet) create(after time.Duration, p *simPod) *simPod {
	p.uid = fmt.Sprintf("%03d", len(k.pods))
	k.pods[p.uid] = p
	k.left++
	k.after(after, func() { k.sandbox(p) })
	return p
}

func (k *kubelet) sandbox(p *simPod) {
	refusal := RetriedSoon
	if k.room > 0 {
		refusal = WaitsOn
	}
	if k.join(p).Reserve(k.now, waitable, refusal).Granted {
		k.after(k.pulls+k.between(300*time.Millisecond, time.Second), func() { k.container(p) })
		return
	}
	k.after(cmp.Or(k.room, k.between(10*time.Second, 15*time.Second)), func() { k.sandbox(p) })
}

func (k *kubelet) join(p *simPod) *Ticket {
	return k.l.Join(k.now, Request{UID: p.uid, Flow: p.flow, Priority: p.prio, Groups: p.groups, Profile: Profile{Kind: p.kind}})
}

func (k *kubelet) container(p *simPod) {
	refusal := RetriedSoon
	if p.backOff != nil {
		if !p.backOff.tries(k.now) {
			k.after(k.between(10*time.Second, 15*time.Second), func() { k.container(p) })
			return
		}
		refusal = RetriedLate
	}
	ticket := k.join(p)
	if ticket.TryStart(k.now).Granted {
		return
	}
	if !ticket.Reserve(k.now, waitable, refusal).Granted {
		k.after(k.between(10*time.Second, 15*time.Second), func() { k.container(p) })
		return
	}
	k.places++
	deadline := k.now.Add(waitable)
	k.after(100*time.Millisecond, func() {
		ticket.Wait(k.now)
		p.waiting = true
		k.after(deadline.Sub(k.now), func() { k.deadline(p, ticket) })
	})
}

func (k *kubelet) deadline(p *simPod, ticket *Ticket) {
	if !p.waiting || decided(ticket) {
		return
	}
	k.deadlines = append(k.deadlines, k.now)
	d := ticket.DeadlineReached(k.now)
	ticket.StopWaiting(k.now)
	p.waiting = false
	if !d.Granted {
		if p.backOff == nil {
			p.backOff = &backOff{}
		}
		p.backOff.ended = k.now
		k.after(k.between(10*time.Second, 15*time.Second), func() { k.container(p) })
	}
}

// begin begins the start of an admitted pod.
func (k *kubelet) begin(p *simPod, ticket *Ticket) {
	if p.waiting {
		ticket.StopWaiting(k.now)
		p.waiting = false
	}
	p.began = k.now
	k.after(p.works, func() { k.finish(p, ticket) })
}

// finish ends the start of a pod that has done its work, if the pod that it needs is ready. Until then it says every
// second that the start makes no progress.
func (k *kubelet) finish(p *simPod, ticket *Ticket) {
	if p.needs == nil || p.needs.started {
		ticket.End(k.now, reasons.Ready)
		return
	}
	if idle := p.began.Add(p.works); k.now.Sub(idle) >= 2*time.Second {
		k.l.Lookup(p.uid).SetStalled(k.now, idle)
	}
	k.after(time.Second, func() { k.finish(p, ticket) })
}

// run plays until all pods have started, and returns how long this took.
func (k *kubelet) run() time.Duration {
	k.t.Helper()
	next := k.settle()
	for k.left > 0 {
		require.Less(k.t, k.now.Sub(t0), 1000*time.Hour, "%d pods are left", k.left)
		require.True(k.t, len(k.todo) > 0 || !next.IsZero(), "no pod will come back, but %d pods are left", k.left)
		at := next
		if len(k.todo) > 0 && (at.IsZero() || k.todo[0].at.Before(at)) {
			at = k.todo[0].at
		}
		k.now = at
		for len(k.todo) > 0 && !k.todo[0].at.After(k.now) {
			heap.Pop(&k.todo).(action).do() //nolint:errcheck,forcetypeassert // only actions are pushed
			k.happened()
		}
		next = k.settle()
	}
	return k.now.Sub(t0)
}

func (k *kubelet) settle() time.Time {
	next := k.l.Advance(k.now)
	k.happened()
	return next
}

func (k *kubelet) happened() {
	for _, e := range k.l.Drain() {
		p := k.pods[e.Ticket.UID()]
		switch e.State {
		case Starting:
			k.admitted[e.Reason]++
			k.emptied = time.Time{}
			k.begin(p, e.Ticket)
		case Started, Gone:
			p.started, p.ended = true, k.now
			k.left--
		case Waiting:
			if e.Reason == reasons.GateExpired {
				k.expired++
			}
		}
	}
	k.mostAbove = max(k.mostAbove, k.l.slots.taken()-k.l.slots.capacity())
	switch empty := k.l.slots.taken() < k.l.slots.capacity() && len(k.l.queue.arrivals) > 0; {
	case !empty:
		k.emptied = time.Time{}
	case k.emptied.IsZero():
		k.emptied = k.now
	default:
		k.empty = max(k.empty, k.now.Sub(k.emptied))
	}
}
