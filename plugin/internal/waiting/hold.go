package waiting

import (
	"cmp"
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
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
	refusals *Refusals
	budget   // of how long handlers wait. All their time is charged, so that those that are slow by themselves hold no pod
}

func newHold(s *shared, refusals *Refusals) *hold {
	return &hold{shared: s, refusals: refusals, budget: newBudget(holdShare, cmp.Or(s.o.SavedHold, holdSaved))}
}

// bars implements way. A container may be admitted within a hold if it is the first in the queue, and does not
// wait for a limit of running pods, which may hold it for hours.
func (h *hold) bars(_ time.Time, held *heldContainer) string {
	switch d := held.Decision; {
	case d.Ahead > 0:
		return "other pods are before it in the queue"
	case d.Reason == reasons.PolicyRunning, d.Reason == reasons.Unadmittable:
		return "its limit may hold it for hours"
	default:
		return ""
	}
}

// take implements way.
func (h *hold) take(ctx context.Context, _ time.Time, held *heldContainer) (*api.Hook, error) {
	h.wait(ctx, func(ctx context.Context) {
		defer held.Ticket.Wait(time.Now())()
		select {
		case <-held.Ticket.Decided():
		case <-ctx.Done():
		}
	})
	d := held.Ticket.TryStart(time.Now())
	if !d.Admitted {
		return nil, h.refusals.refuse(held.made, d, held.Since)
	}
	return nil, nil
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
