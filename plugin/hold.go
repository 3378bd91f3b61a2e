package plugin

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of holding. A handler that waits holds up every pod of the node.
const (
	holdShare = 0.1             // of wall time, over all pods, with all else that handlers take
	holdSaved = 2 * time.Second // what can be saved up at most
)

// holdBudget says how long a handler may wait now. All that handlers take is charged to
// it, so that handlers which are slow by themselves hold nobody. The zero value is full.
type holdBudget struct {
	most time.Duration // what can be saved up; 0: holdSaved

	mu    sync.Mutex
	saved time.Duration
	last  time.Time
}

// take gives at most want out of the budget.
func (b *holdBudget) take(now time.Time, want time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fillLocked(now)
	got := max(0, min(want, b.saved))
	b.saved -= got
	return got
}

// charge takes note that a handler took d at now, beside what it waited.
func (b *holdBudget) charge(now time.Time, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fillLocked(now)
	b.saved = max(b.saved-max(0, d), -b.full())
}

func (b *holdBudget) fillLocked(now time.Time) {
	if b.last.IsZero() {
		b.saved = b.full()
	} else {
		b.saved = min(b.saved+time.Duration(holdShare*float64(max(0, now.Sub(b.last)))), b.full())
	}
	b.last = now
}

// giveBack returns what was taken and not used.
func (b *holdBudget) giveBack(unused time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = min(b.saved+max(0, unused), b.full())
}

func (b *holdBudget) full() time.Duration { return cmp.Or(b.most, holdSaved) }

// longestHold is how long one handler may wait in all: never beyond half the time
// after which the runtime closes the connection, and lets every pod go.
func (p *pacer) longestHold() time.Duration {
	hold := p.options.Hold
	if timeout := time.Duration(p.requestTimeout.Load()); timeout > 0 {
		hold = min(hold, timeout/2)
	}
	return hold
}

// held runs wait with a context that ends with the outer one, or when the hold is used up.
func (p *pacer) held(outer context.Context, wait func(context.Context)) {
	begin := time.Now()
	allowed := p.hold.take(begin, p.longestHold())
	if allowed <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(outer, allowed)
	defer cancel()
	wait(ctx)
	took := time.Since(begin)
	p.hold.giveBack(allowed - took)
	p.metrics.held.Add(took.Seconds())
	if held, ok := outer.Value(heldKey{}).(*atomic.Int64); ok {
		held.Add(int64(took))
	}
}
