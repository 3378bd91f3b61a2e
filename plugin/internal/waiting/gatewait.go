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

// wait is Wait for a hook. It ends with the pod, the container, when all waits end, and before its deadline.
func (g *Gate) wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	// If the clock was set back since the hook was made, its deadline is too late for kubelet.
	if latest := time.Now().Add(g.o.Gate.Timeout); h.Deadline.After(latest) {
		h.Deadline = latest
	}
	g.waiters.Add(1)
	defer g.waiters.Add(-1)
	g.breaker.contact(h.ContainerID)
	p := g.o.Starts.EnterGate(time.Now(), podOf(h), h.ContainerID, h.Since, h.Deadline)
	defer p.Leave()
	ends := func(now starts.Outlook, _ bool) (gate.Verdict, bool) { return g.ended(now, p) }
	return await(ctx, h, p, p.Gone, sendForecast, ends, func() gate.Verdict { return g.expire(p) })
}

// podOf returns the pod that a process says it waits for.
func podOf(h gate.Hello) starts.Identity {
	name := observe.PodName(h.Name)
	return starts.Identity{UID: h.PodUID, Namespace: name.Namespace, Name: name.Name}
}

// await blocks until a waiting process has its answer, and sends it its forecast each time that this changes. ends
// returns the answer if there is one. It is called again when the ticket is decided, when done is closed, and when the
// reasons to end all waits or the forecasts change, and at the deadline; sent reports whether the process was sent a
// forecast. expire returns the answer at the deadline if ends has none: a turn at the same moment is not lost.
func await(
	ctx context.Context, h gate.Hello, p starts.Process, done <-chan struct{}, sendForecast gate.SendForecast,
	ends func(now starts.Outlook, sent bool) (gate.Verdict, bool), expire func() gate.Verdict,
) (gate.Verdict, error) {
	var expiry <-chan time.Time // never, if the deadline is not known
	if !h.Deadline.IsZero() {
		expiry = time.After(time.Until(h.Deadline) - expiryMargin)
	}
	var last starts.Forecast
	sent := false
	for now := p.Outlook; ; now = p.Look(h.Deadline) {
		forecast := now.Forecast
		if forecast.Supersedes(last) {
			sendForecast(forecast.LeaveAt, forecast.Place, forecast.Pace)
			last, sent = forecast, true
		}
		if v, ended := ends(now, sent); ended {
			return v, nil
		}
		select {
		case <-p.Decided():
		case <-done:
		case <-now.Changed:
		case <-now.Moved:
		case <-expiry:
			if v, ended := ends(p.Look(h.Deadline), sent); ended {
				return v, nil
			}
			return expire(), nil
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
	}
}

// ended returns the answer to a hook whose wait is over. A pod keeps its place in the queue when its hook is sent away.
func (g *Gate) ended(now starts.Outlook, p starts.Process) (v gate.Verdict, ends bool) {
	switch {
	case now.State != throttle.Waiting, isClosed(p.Gone):
		return decided(now, isClosed(p.Gone)), true
	case now.Ends.HoldsNone != "":
		p.StartNotHeld(time.Now())
		return gate.Verdict{Go: true, Reason: now.Ends.HoldsNone}, true
	case now.Ends.Shutdown:
		return gate.Verdict{Reason: gate.NodeShutdown}, true
	case now.Ends.Pressure:
		return gate.Verdict{Reason: gate.NodePressure}, true
	default:
		return gate.Verdict{}, false
	}
}

// decided returns the answer to a process whose ticket is decided, or whose container is gone, or both.
func decided(now starts.Outlook, gone bool) gate.Verdict {
	switch {
	case now.State == throttle.Gone:
		return gate.Verdict{Reason: now.Reason}
	case gone:
		return gate.Verdict{Reason: gate.Replaced}
	default:
		return gate.Verdict{Go: true, Reason: now.Reason}
	}
}

// expire returns the answer to a hook whose deadline comes before its turn.
func (g *Gate) expire(p starts.Process) gate.Verdict {
	d := p.DeadlineReached(time.Now())
	if d.Reason == reasons.GateExpired {
		g.expired.Add(1)
	}
	return gate.Verdict{Go: d.Granted, Reason: d.Reason}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
