package starts

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Ledger is the limiter and the pods under one lock. An event of the runtime, a report of kubelet
// or a question is one method of it, and one decision. The Ledger can call nothing but the limiter, so nothing is
// logged, asked or waited for under its lock. Its methods are safe for concurrent use and do not block.
type Ledger struct {
	inForce atomic.Pointer[policies.Set] // replaced only while mu is held

	woken chan struct{} // holds at most one: the loop is to do a round

	mu      sync.Mutex
	entries entries // guarded by mu
}

// entries are what a Ledger guards. The caller of a method holds its lock.
type entries struct {
	limiter  *throttle.Limiter
	config   *atomic.Pointer[crd.Effective]
	waitable time.Duration   // Options.Waitable
	pods     map[string]*Pod // by UID
	version  uint64          // counts how often something new was known of a pod
	after    awaitedPods
	resort   *lastResort
}

// newLedger returns a Ledger without policies. server and waitable are Options.Server and Options.Waitable.
func newLedger(now time.Time, server bool, waitable time.Duration, config *atomic.Pointer[crd.Effective]) *Ledger {
	limiter := throttle.New(now, throttle.Settings{})
	l := &Ledger{woken: make(chan struct{}, 1), entries: entries{
		limiter: limiter, config: config, waitable: waitable, resort: newLastResort(now), pods: map[string]*Pod{},
	}}
	l.inForce.Store(policies.New(server))
	return l
}

func (l *Ledger) lock() { l.mu.Lock() }

// unlock releases the lock, and wakes the loop if the limiter has changed. A waiting process learns of its admission at
// once, by the ticket.
func (l *Ledger) unlock() {
	changed := l.entries.limiter.Changed()
	l.mu.Unlock()
	if changed {
		l.wake()
	}
}

// wake makes the loop do a round soon.
func (l *Ledger) wake() {
	select {
	case l.woken <- struct{}{}:
	default: // it is about to
	}
}

// lockMatching takes the lock, and returns the pods, with their groups by the policies in force. It adds those that are
// unknown. It finds the groups before it takes the lock, and again if the policies have changed in between.
func (l *Ledger) lockMatching(now time.Time, all ...subject) (their []*Pod) {
	for {
		set := l.inForce.Load()
		found := make([]matched, len(all))
		for i, s := range all {
			found[i] = s.match(set)
		}
		l.lock()
		if l.inForce.Load() == set {
			defer func() {
				if len(their) < len(all) { // a panic
					l.unlock()
				}
			}()
			for i, s := range all {
				p := l.entries.at(s.Identity)
				l.entries.put(now, p, found[i])
				their = append(their, p)
			}
			return their
		}
		l.unlock()
	}
}

// grouped returns all pods, and the version of what is known of them.
func (l *Ledger) grouped() (all []policies.Pod, version uint64) {
	l.lock()
	defer l.unlock()
	for _, p := range l.entries.pods {
		all = append(all, p.matched.Pod)
	}
	return all, l.entries.version
}

// enforce replaces the policies in force, and the groups of all pods by what matches them, in one step. It finds the
// groups before it takes the lock, and does nothing and returns false if the policies or what is known of pods have
// changed in between.
func (l *Ledger) enforce(now time.Time, before, next *policies.Set) bool {
	all, version := l.grouped()
	found, limits := make([]matched, len(all)), next.Limits()
	for i, pod := range all {
		found[i] = matched{Pod: pod, groups: next.Groups(pod)}
	}
	l.lock()
	defer l.unlock()
	if l.inForce.Load() != before || l.entries.version != version {
		return false
	}
	l.inForce.Store(next)
	l.entries.regroup(now, limits, found)
	return true
}
