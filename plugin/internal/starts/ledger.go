package starts

import (
	"sync/atomic"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// ledger is what the lock of a Starts guards: the limiter and the pods. The caller of a method holds the lock. A method
// decides, and notes in effects what others are to learn of that. The ledger has no log, no pod watch and no callback, so
// nothing is logged, asked or waited for under the lock.
type ledger struct {
	limiter  *throttle.Limiter
	config   *atomic.Pointer[crd.Effective]
	waitable time.Duration   // Options.Waitable
	pods     map[string]*Pod // by UID
	version  uint64          // counts how often something new was known of a pod
	after    afterPods       // the pods that startAfter waits for
	resort   lastResort      // starts pods that the limiter has forgotten
	board    board           // when those that wait with a process will have their turn
	node     nodeEnds        // what ends all waits
	hooks    oldHooks        // those that outlived an earlier daemon
	effects  effects
}

// effects are what a decision causes elsewhere, once the lock is free.
type effects struct {
	reports   []observe.Event
	forgotten []string   // UIDs of pods that have nothing left here
	ready     *ReadyOnce // to be kept for the next daemon; nil if nothing is new
	wakes     bool       // the loop is to do a round
}

func newLedger(now time.Time, waitable time.Duration, config *atomic.Pointer[crd.Effective]) ledger {
	return ledger{
		limiter: throttle.New(now, throttle.Settings{}), config: config, waitable: waitable,
		pods: map[string]*Pod{}, resort: lastResort{admitted: now}, board: board{moved: make(chan struct{})},
		after: afterPods{ready: map[string]bool{}}, node: nodeEnds{changed: make(chan struct{})}, hooks: oldHooks{back: make(chan struct{})},
	}
}

// at returns the pod with this identity. It adds a pod that is unknown.
func (l *ledger) at(who Identity) *Pod {
	p := l.pods[who.UID]
	if p == nil {
		p = newPod(who)
		p.ticket = l.limiter.Lookup(who.UID) // kubelet may make containers of a pod that was deleted
		l.pods[who.UID] = p
	}
	return p
}

// forget forgets a pod unless something is left of it. If the pod watch knows it, what policies match and its latest start
// are kept: it counts as running until it has finished.
func (l *ledger) forget(now time.Time, p *Pod) {
	if p.isLeft() {
		return
	}
	l.effects.forgotten = append(l.effects.forgotten, p.UID)
	if p.known {
		p.reported, p.inRuntime = false, nothingReported()
		p.selected, p.shadow, p.asks = nil, nil, asking{}
		return
	}
	delete(l.pods, p.UID)
	l.limiter.Finished(now, p.UID)
}

// report makes unlock report an event.
func (l *ledger) report(e observe.Event) { l.effects.reports = append(l.effects.reports, e) }

func (s *Starts) lock() { s.mu.Lock() }

// unlock releases the lock, and then lets the effects of the decision happen. It wakes the loop also if the limiter has
// changed. A waiting process learns of its admission at once, by the ticket.
func (s *Starts) unlock() {
	e := s.ledger.effects
	s.ledger.effects = effects{}
	e.wakes = s.ledger.limiter.Changed() || e.wakes
	s.mu.Unlock()
	if e.wakes {
		s.Wake()
	}
	for _, event := range e.reports {
		s.o.Observer.Report(event)
	}
	if e.ready != nil && s.o.KeepReady != nil {
		s.o.KeepReady(*e.ready)
	}
	for _, uid := range e.forgotten {
		s.o.Observer.Forget(uid)
		s.o.Forgotten(uid)
	}
}

// Wake makes Run do a round soon.
func (s *Starts) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it is about to
	}
}

// lockPods takes the lock, and returns the pods, with what their sandboxes say and their groups by the policies in force. It
// adds those that are unknown. It finds the groups before it takes the lock, and again if the policies have changed in
// between.
func (s *Starts) lockPods(now time.Time, all ...subject) (their []*Pod) {
	found := make([]matched, len(all))
	match := func(set *policies.Set) *policies.Set {
		for i, one := range all {
			found[i] = one.match(set)
		}
		return set
	}
	set := match(s.inForce.Load())
	for s.lock(); s.inForce.Load() != set; s.lock() {
		s.unlock()
		set = match(s.inForce.Load())
	}
	defer func() {
		if len(their) < len(all) { // a panic
			s.unlock()
		}
	}()
	for i, one := range all {
		p := s.ledger.at(one.Identity)
		s.ledger.put(now, p, found[i])
		if one.sandbox != nil {
			p.update(one.sandbox)
			p.selected = s.selectors.Load().entriesOf(p.Namespace, one.sandbox.GetLabels())
		}
		their = append(their, p)
	}
	return their
}

// lockPod is lockPods of one pod.
func (s *Starts) lockPod(now time.Time, one subject) *Pod { return s.lockPods(now, one)[0] }

// put replaces the groups of a pod. A pod without news keeps its groups.
func (l *ledger) put(now time.Time, p *Pod, m matched) {
	if p.matched.known && !m.known {
		return
	}
	p.matched, l.version = m, l.version+1
	l.limiter.SetGroups(now, throttle.PodGroups{UID: p.UID, Groups: m.groups})
}
