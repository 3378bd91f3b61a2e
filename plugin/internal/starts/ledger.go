package starts

import (
	"sync"
	"sync/atomic"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Ledger is the book of pods and the limiter under one lock: whatever needs both in one step is a
// method of it. It has nothing else to call, so under its lock nothing can be logged, asked or
// waited for. Safe for concurrent use.
type Ledger struct {
	limiter  *throttle.Limiter
	policies *policies.Matcher
	config   *atomic.Pointer[crd.Effective]

	mu      sync.Mutex
	book    *pods.Book
	shadows shadows  // starts that went on at once in the mode Shadow
	byRoom  fromRoom // starts that waited before their sandbox existed
}

func newLedger(l *throttle.Limiter, k *policies.Matcher, config *atomic.Pointer[crd.Effective]) *Ledger {
	return &Ledger{limiter: l, policies: k, config: config, book: pods.NewBook(), shadows: shadows{}, byRoom: fromRoom{}}
}

// Read calls f with the book, which f must neither change nor keep. l.mu is held meanwhile: f calls
// no other package.
func (l *Ledger) Read(f func(b *pods.Book)) {
	l.mu.Lock()
	defer l.mu.Unlock() // also when f panics
	f(l.book)
}
