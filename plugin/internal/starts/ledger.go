package starts

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Ledger is the book of pods, their groups and the limiter under one lock. A step that needs two of them is a method
// of it. The Ledger can call nothing but the limiter, so nothing is logged, asked or waited for under its lock. It is
// safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	entries entries // guarded by mu
}

// entries are what a Ledger guards. The caller of a method holds its lock.
type entries struct {
	limiter  *throttle.Limiter
	config   *atomic.Pointer[crd.Effective]
	waitable time.Duration // Options.Waitable
	book     *pods.Book
	matcher  *policies.Matcher
	shadows  shadows                     // starts that continued at once in the mode Shadow
	byRoom   map[string]*throttle.Ticket // of starts that waited in the waiting room, by UID
}

func newLedger(limiter *throttle.Limiter, matcher *policies.Matcher, waitable time.Duration, config *atomic.Pointer[crd.Effective]) *Ledger {
	return &Ledger{entries: entries{
		limiter: limiter, config: config, waitable: waitable,
		book: pods.NewBook(), matcher: matcher, shadows: shadows{}, byRoom: map[string]*throttle.Ticket{},
	}}
}

// withMatcher calls f with the matcher, under the lock. f must do nothing else.
func (l *Ledger) withMatcher(f func(*policies.Matcher)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.entries.matcher)
}
