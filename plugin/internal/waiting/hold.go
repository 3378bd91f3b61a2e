package waiting

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Bounds of holding. A handler that waits holds up every pod of the node.
const (
	holdShare = 0.1             // of wall time, over all pods, with all else that handlers take
	holdSaved = 2 * time.Second // what can be saved up at most
)

// hold is the way to wait inside a handler, for a moment. Made by newHold; safe for concurrent use.
type hold struct {
	holdBudget
	most     time.Duration
	observer *observe.Observer
	runtime  *atomic.Pointer[runtime]
}

func newHold(o Options, r *atomic.Pointer[runtime]) *hold {
	return &hold{holdBudget: newHoldBudget(cmp.Or(o.SavedHold, holdSaved)), most: o.Hold, observer: o.Observer, runtime: r}
}

// maySuffice reports whether what a container waits for may come within a hold: no other goes first, and
// it is no bound of running pods, which may hold it for hours, and which nothing may pass.
func (h *hold) maySuffice(d throttle.Decision) bool {
	return d.Ahead == 0 && d.Reason != reasons.PolicyRunning && d.Reason != reasons.Unadmittable
}

// admits waits until a container may start, for a moment. False: its turn has not come, and a.Decision says why.
func (h *hold) admits(ctx context.Context, a *HeldContainer) bool {
	h.wait(ctx, func(ctx context.Context) {
		a.Ticket.Wait(time.Now())
		defer func() { a.Ticket.StopWaiting(time.Now()) }()
		select {
		case <-a.Ticket.Decided():
		case <-ctx.Done():
		}
	})
	a.Decision = a.Ticket.TryStart(time.Now())
	return a.Decision.Admitted
}

// longest is how long one handler may wait in all: never beyond half the time
// after which the runtime closes the connection, and lets every pod go.
func (h *hold) longest() time.Duration {
	if timeout := h.runtime.Load().timeout; timeout > 0 {
		return min(h.most, timeout/2)
	}
	return h.most
}

// wait runs wait with a context that ends with the outer one, or when the hold is used up. The
// time that it takes is charged with that of the whole handler: the runtime calls no other meanwhile.
func (h *hold) wait(outer context.Context, wait func(context.Context)) {
	begin := time.Now()
	allowed := min(h.longest(), h.left(begin))
	if allowed <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(outer, allowed)
	defer cancel()
	defer func() { h.observer.Held(time.Since(begin)) }()
	wait(ctx)
}

// holdBudget says how long a handler may wait now. All that handlers take is charged to
// it, so that handlers which are slow by themselves hold no pod. Made by newHoldBudget, full.
type holdBudget struct {
	most time.Duration // what can be saved up; as much can be owed
	// tokens are the microseconds that are left, counted from the most that can be owed.
	tokens *rate.Limiter
}

func newHoldBudget(most time.Duration) holdBudget {
	return holdBudget{most: most, tokens: rate.NewLimiter(holdShare*1e6, int(2*most.Microseconds()))}
}

// left returns for how long handlers may wait now; 0 or less: not at all.
func (b holdBudget) left(now time.Time) time.Duration {
	return time.Duration(b.tokens.TokensAt(now))*time.Microsecond - b.most
}

// charge takes note that a handler took d at now.
func (b holdBudget) charge(now time.Time, d time.Duration) {
	taken := func() bool {
		return b.tokens.AllowN(now, int(min(max(0, d.Microseconds()), int64(b.tokens.TokensAt(now)))))
	}
	for !taken() { // another was charged meanwhile, so that fewer are left than were read
		continue
	}
}
