package waiting

import (
	"cmp"
	"context"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Limits of holds. A handler that waits holds up every pod of the node.
const (
	holdShare = 0.1             // of wall time, over all pods, including all other work of handlers
	holdSaved = 2 * time.Second // can be saved up at most; as much can be owed
)

// hold is the way to wait for a moment inside a handler. It is safe for concurrent use.
type hold struct {
	*shared
	budget // of how long handlers wait. All their time is charged, so that those that are slow by themselves hold no pod
}

func newHold(s *shared) *hold {
	return &hold{shared: s, budget: newBudget(holdShare, cmp.Or(s.o.SavedHold, holdSaved))}
}

// bars returns why a container for which d was decided is not held, or "" if it is. It may be admitted within a hold if it
// is the first in the queue, and does not wait for a limit of running pods, which may hold it for hours, nor for one that
// allows the next start only later.
func (h *hold) bars(now time.Time, d throttle.Decision) string {
	switch {
	case d.Ahead > 0:
		return "other pods are before it in the queue"
	case d.Held.Until.After(now.Add(h.longest())):
		return "its limit holds it for longer"
	case d.Reason == reasons.PolicyRunning, d.Reason == reasons.Unadmittable:
		return "its limit may hold it for hours"
	default:
		return ""
	}
}

// until holds the handler until the ticket is decided, and returns the decision.
func (h *hold) until(ctx context.Context, t starts.Ticket) throttle.Decision {
	h.wait(ctx, func(ctx context.Context) {
		defer t.Wait(time.Now())()
		select {
		case <-t.Decided():
		case <-ctx.Done():
		}
	})
	return t.TryStart(time.Now())
}

// longest returns how long one handler may wait in all. It is at most half of the time after which the
// runtime closes the connection and starts every pod unpaced.
func (h *hold) longest() time.Duration {
	if timeout := h.runtime.Load().timeout; timeout > 0 {
		return min(h.o.Hold, timeout/2)
	}
	return h.o.Hold
}

// wait calls wait with a context that ends with the outer context, or when the budget is used up. The
// budget is charged when the handler returns: the runtime calls no other handler meanwhile.
func (h *hold) wait(outer context.Context, wait func(context.Context)) {
	begin := time.Now()
	allowed := min(h.longest(), h.left(begin))
	if allowed <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(outer, allowed)
	defer cancel()
	defer func() { h.o.Observer.Report(observe.HandlerHold{Took: time.Since(begin)}) }()
	wait(ctx)
}
