package waiting

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// expiryMargin is how long before its deadline a hook gets its answer, so that
// it does not go on by itself.
const expiryMargin = 500 * time.Millisecond

// Backend answers hooks, and processes in the waiting room: it is a [gate.Backend]. The zero value
// is not valid.
type Backend struct {
	*Gate
	Room *Room
}

// Alive implements gate.Backend.
func (b Backend) Alive(ctx context.Context) error { return b.starts.Alive(ctx) }

// Wait implements gate.Backend: it blocks until the start of the hook's pod is
// decided.
func (b Backend) Wait(ctx context.Context, h gate.Hello, sendTurn gate.SendTurn) (gate.Verdict, error) {
	if h.Room {
		return b.Room.Wait(ctx, h, sendTurn)
	}
	b.waiters.Add(1)
	defer b.waiters.Add(-1)
	b.breaker.contact(h.ContainerID)
	name := observe.PodName(h.Name)
	t, gone := b.starts.Attend(pods.Pod{UID: h.PodUID, Namespace: name.Namespace, Name: name.Name}, h.ContainerID, h.Since)
	defer b.starts.HookLeft(h.PodUID, h.ContainerID)
	ends := func(state starts.ValveState, _ bool) (gate.Verdict, bool) { return b.ended(state, t, gone) }
	if state, _ := b.starts.Valve.Now(); state.Shutdown || state.Pressure {
		if v, ended := ends(state, false); ended {
			return v, nil
		}
	}
	t.Wait(time.Now())
	b.starts.Hooks.Back(h.ContainerID)
	defer func() { t.StopWaiting(time.Now()) }()
	return b.await(ctx, h, t, gone, sendTurn, ends, func() gate.Verdict { return expired(time.Now(), t, gone) })
}

// await has a process wait, and tells it its turn each time that this changes. ends gives the answer, if
// there is one, and is asked again when the ticket is decided or over is closed, and when the valve or the
// turns change; told says whether the process has been told a turn. expired gives the answer at the deadline.
func (g *Gate) await(
	ctx context.Context, h gate.Hello, t *throttle.Ticket, over <-chan struct{}, sendTurn gate.SendTurn,
	ends func(state starts.ValveState, told bool) (gate.Verdict, bool), expired func() gate.Verdict,
) (gate.Verdict, error) {
	expiry := time.After(time.Until(h.Deadline) - expiryMargin)
	var said turns.Said
	told := false
	for {
		state, changed := g.starts.Valve.Now()
		turn, moved := g.board.Of(t.UID())
		if said.Changed(turn, h.Deadline) {
			sendTurn(turn.LeaveAt(h.Deadline), turn.Position(), turn.Step(h.Deadline))
			told = true
		}
		if v, ended := ends(state, told); ended {
			return v, nil
		}
		select {
		case <-t.Decided():
		case <-over:
		case <-changed:
		case <-moved:
		case <-expiry:
			return expired(), nil
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
	}
}

// ended returns the answer to a hook that waits no longer. gone is closed when nothing may start for its
// container. A hook that is sent away leaves its pod's place in the queue as it is.
func (b Backend) ended(state starts.ValveState, t *throttle.Ticket, gone <-chan struct{}) (v gate.Verdict, ends bool) {
	switch {
	case isClosed(t.Decided()), isClosed(gone):
		return decided(t, gone), true
	case state.LetGo:
		now := time.Now()
		v, _ := b.starts.Limiter.View(now, t.UID())
		b.starts.GoOn(now, t, v.Reason)
		return gate.Verdict{Go: true, Reason: b.starts.Valve.WhyUnheld()}, true
	case state.Shutdown:
		return gate.Verdict{Reason: gate.NodeShutdown}, true
	case state.Pressure:
		return gate.Verdict{Reason: gate.NodePressure}, true
	default:
		return gate.Verdict{}, false
	}
}

// decided is the answer to a hook whose ticket waits no longer, or for whose container
// nothing may start any more, for which gone is closed. Both may come at once.
func decided(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	switch state, reason := t.Status(); {
	case state == throttle.Gone:
		return gate.Verdict{Reason: reason}
	case isClosed(gone):
		return gate.Verdict{Reason: gate.Replaced}
	default:
		return gate.Verdict{Go: true, Reason: reason}
	}
}

// expired is the answer to a hook whose deadline comes before its turn. One for
// whose container nothing may start takes no place over the limit.
func expired(now time.Time, t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if isClosed(gone) {
		return decided(t, gone)
	}
	if d := t.DeadlineReached(now); !d.Admitted {
		return gate.Verdict{Reason: d.Reason}
	}
	return decided(t, gone) // its pod may have been deleted meanwhile
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Waiters returns how many hooks wait in the gate now.
func (g *Gate) Waiters() int { return int(g.waiters.Load()) }

// ContainerStarted takes note of a container that started: did its hook ask before?
func (g *Gate) ContainerStarted(id string) { g.holdAgainstHooks(g.breaker.Started(time.Now(), id)) }

// ContainerGone takes note of a container that came to its end, or to nothing.
func (g *Gate) ContainerGone(id string) { g.holdAgainstHooks(g.breaker.Gone(time.Now(), id)) }

// holdAgainstHooks says why the gate is not used from now on; empty: nothing has changed.
func (g *Gate) holdAgainstHooks(against string) {
	if against != "" {
		g.log.WithField("no_gate", against).Warn("the gate is given up for a while: containers are refused instead")
		g.observer.Node(corev1.EventTypeWarning, "GateGivenUp", "Containers are refused for a while instead of waiting in the gate: "+against)
	}
}
