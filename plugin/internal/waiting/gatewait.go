package waiting

import (
	"context"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// expiryMargin is how long before its deadline a hook gets its answer, so that it does not start its
// container by itself.
const expiryMargin = 500 * time.Millisecond

// Alive implements [gate.Backend].
func (c *Chooser) Alive(ctx context.Context) error { return c.o.Starts.Alive(ctx) }

// Wait implements [gate.Backend]: it blocks until the start of the pod is decided. A verdict without Go fails the start: if
// podwatch.Pod.StartsAgain is false for a container, that loses the container or the pod. The gate also answers hooks of an
// earlier daemon that this one does not know.
func (c *Chooser) Wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	if h.Room {
		return c.Room.wait(ctx, h, sendForecast)
	}
	return c.Gate.wait(ctx, h, sendForecast)
}

// wait is Wait for a hook. It ends with the pod, the container, the valve, and before its deadline.
func (g *Gate) wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	// If the clock was set back since the hook was made, its deadline is too late for kubelet.
	if latest := time.Now().Add(g.o.Gate.Timeout); h.Deadline.After(latest) {
		h.Deadline = latest
	}
	g.waiters.Add(1)
	defer g.waiters.Add(-1)
	g.breaker.contact(h.ContainerID)
	t, gone, now := g.o.Starts.HookTicket(podOf(h), h.ContainerID, h.Since)
	ends := func(state starts.ValveState, _ bool) (gate.Verdict, bool) { return g.ended(state, t, gone) }
	// Before the wait begins: it would take a free slot.
	if now.Shutdown || now.Pressure {
		if v, ended := ends(now, false); ended {
			return v, nil
		}
	}
	defer t.WaitInHook(time.Now(), h.ContainerID)()
	return g.await(ctx, h, t, gone, sendForecast, ends, func() gate.Verdict {
		v := expired(time.Now(), t, gone)
		if v.Reason == reasons.GateExpired {
			g.expired.Add(1)
		}
		return v
	})
}

// podOf returns the pod that a process says it waits for.
func podOf(h gate.Hello) starts.Identity {
	name := observe.PodName(h.Name)
	return starts.Identity{UID: h.PodUID, Namespace: name.Namespace, Name: name.Name}
}

// await blocks until a waiting process has its answer, and sends it its forecast each time that this changes. ends
// returns the answer if there is one. It is called again when the ticket is decided, when done is closed, and when the
// valve or the forecasts change, but not because time passes; sent reports whether the process was sent a forecast.
// expired returns the answer at the deadline.
func (s *shared) await(
	ctx context.Context, h gate.Hello, t starts.Ticket, done <-chan struct{}, sendForecast gate.SendForecast,
	ends func(state starts.ValveState, sent bool) (gate.Verdict, bool), expired func() gate.Verdict,
) (gate.Verdict, error) {
	var expiry <-chan time.Time // never, if the deadline is not known
	if !h.Deadline.IsZero() {
		expiry = time.After(time.Until(h.Deadline) - expiryMargin)
	}
	var last starts.Forecast
	sent := false
	for {
		now := s.o.Starts.Outlook(t.UID(), h.Deadline)
		forecast := now.Forecast
		if forecast.Supersedes(last) {
			sendForecast(forecast.LeaveAt, forecast.Place, forecast.Pace)
			last, sent = forecast, true
		}
		if v, ended := ends(now.Valve, sent); ended {
			return v, nil
		}
		select {
		case <-t.Decided():
		case <-done:
		case <-now.Changed:
		case <-now.Moved:
		case <-expiry:
			return expired(), nil
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
	}
}

// ended returns the answer to a hook whose wait is over. gone is closed when nothing may start for its
// container any more. A pod keeps its place in the queue when its hook is sent away.
func (g *Gate) ended(state starts.ValveState, t starts.Ticket, gone <-chan struct{}) (v gate.Verdict, ends bool) {
	switch {
	case isClosed(t.Decided()), isClosed(gone):
		return decided(t, gone), true
	case state.HoldsNone:
		t.StartNotHeld(time.Now())
		return gate.Verdict{Go: true, Reason: g.o.Starts.Valve.WhyHoldsNone()}, true
	case state.Shutdown:
		return gate.Verdict{Reason: gate.NodeShutdown}, true
	case state.Pressure:
		return gate.Verdict{Reason: gate.NodePressure}, true
	default:
		return gate.Verdict{}, false
	}
}

// decided returns the answer to a hook whose ticket is decided, or for whose container nothing may start
// any more (gone is closed), or both.
func decided(t starts.Ticket, gone <-chan struct{}) gate.Verdict {
	switch state, reason := t.Status(); {
	case state == throttle.Gone:
		return gate.Verdict{Reason: reason}
	case isClosed(gone):
		return gate.Verdict{Reason: gate.Replaced}
	default:
		return gate.Verdict{Go: true, Reason: reason}
	}
}

// expired returns the answer to a hook whose deadline comes before its turn. If nothing may start for its
// container any more, no expiry is reported.
func expired(now time.Time, t starts.Ticket, gone <-chan struct{}) gate.Verdict {
	if !isClosed(gone) {
		if d := t.DeadlineReached(now); !d.Admitted {
			return gate.Verdict{Reason: d.Reason}
		}
	}
	return decided(t, gone) // also after the deadline: the pod may have been deleted meanwhile
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
