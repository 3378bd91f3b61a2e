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
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
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
	state, _ := b.starts.Valve.Now()
	switch {
	case state.Shutdown:
		return sentAway(t, gone, gate.NodeShutdown), nil
	case state.Pressure && b.starts.Valve.Holds():
		return sentAway(t, gone, gate.NodePressure), nil
	}
	t.Wait(time.Now())
	b.starts.Hooks.Back(h.ContainerID)
	defer func() { t.StopWaiting(time.Now()) }()
	expiry := time.NewTimer(time.Until(h.Deadline) - expiryMargin)
	defer expiry.Stop()
	var said turns.Said
	for {
		state, changed := b.starts.Valve.Now()
		if v, ends := b.ended(state, t, gone); ends {
			return v, nil
		}
		turn, moved := b.board.Of(t.UID())
		if said.Changed(turn, h.Deadline) {
			sendTurn(turn.LeaveAt(h.Deadline), turn.Position(), turn.Step(h.Deadline))
		}
		select {
		case <-t.Decided():
			return decided(t, gone), nil
		case <-gone:
			return decided(t, gone), nil
		case <-expiry.C:
			return expired(time.Now(), t, gone), nil
		case <-changed:
		case <-moved:
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
	}
}

// ended returns the answer to a hook whose wait is of no use any more.
func (b Backend) ended(state starts.ValveState, t *throttle.Ticket, gone <-chan struct{}) (v gate.Verdict, ends bool) {
	switch {
	case state.LetGo:
		return b.letGo(t, gone), true
	case state.Shutdown:
		return sentAway(t, gone, gate.NodeShutdown), true
	case state.Pressure:
		return sentAway(t, gone, gate.NodePressure), true
	default:
		return gate.Verdict{}, false
	}
}

// letGo is the answer to a hook that waits where no pod is held any more. gone is
// closed when nothing may start for its container.
func (b Backend) letGo(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if state, _ := t.Status(); state != throttle.Waiting || isClosed(gone) {
		return decided(t, gone)
	}
	now := time.Now()
	v, _ := b.starts.Limiter.View(now, t.UID())
	b.starts.GoOn(now, t, v.Reason)
	return gate.Verdict{Go: true, Reason: b.starts.Valve.WhyUnheld()}
}

// sentAway is the answer, for a reason, to a hook that must not wait any longer. Its pod keeps its
// place in the queue.
func sentAway(t *throttle.Ticket, gone <-chan struct{}, reason reasons.Reason) gate.Verdict {
	if state, _ := t.Status(); state != throttle.Waiting || isClosed(gone) {
		return decided(t, gone)
	}
	return gate.Verdict{Reason: reason}
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
