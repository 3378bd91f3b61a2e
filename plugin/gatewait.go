package plugin

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// expiryMargin is how long before its deadline a hook gets its answer, so that
// it does not go on by itself.
const expiryMargin = 500 * time.Millisecond

// Wait implements gate.Backend: it blocks until the start of the hook's pod is
// decided.
func (p *pacer) Wait(ctx context.Context, h gate.Hello, tell gate.Tell) (gate.Verdict, error) {
	p.atGate.Add(1)
	p.metrics.gateWaiters.Inc()
	defer func() {
		p.atGate.Add(-1)
		p.metrics.gateWaiters.Dec()
	}()
	p.gate.hooks.contact(h.ContainerID)
	t, gone := p.attended(h)
	switch {
	case p.shutdown.isSet():
		defer p.left(h)
		return shutOut(t, gone), nil
	case p.holds() && p.gate.pressure.isSet():
		defer p.left(h)
		return sentAway(t, gone), nil
	}
	t.Wait(time.Now())
	p.rejoin.came(h.ContainerID)
	defer func() {
		t.StopWaiting(time.Now())
		p.left(h)
	}()
	expiry := time.NewTimer(time.Until(h.Deadline) - expiryMargin)
	defer expiry.Stop()
	var last told
	for {
		turn, moved := p.turns.of(t.UID())
		if at := turn.leaveAt(h.Deadline); turn.position > 0 && last.differs(at, turn.position) {
			last = told{at, turn.position}
			tell(at, turn.position, turn.step(h.Deadline))
		}
		select {
		case <-t.Decided():
			return decided(t, gone), nil
		case <-p.letsGo.opens():
			return p.letGo(t, gone), nil
		case <-p.shutdown.opens():
			return shutOut(t, gone), nil
		case <-p.gate.pressure.opens():
			return sentAway(t, gone), nil
		case <-gone:
			return decided(t, gone), nil
		case <-expiry.C:
			return expired(time.Now(), t, gone), nil
		case <-moved:
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
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
// whose container nothing may start takes nobody's place over the limit.
func expired(now time.Time, t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if isClosed(gone) {
		return decided(t, gone)
	}
	if d := t.DeadlineReached(now); !d.Admitted {
		return gate.Verdict{Reason: d.Reason}
	}
	return decided(t, gone) // its pod may have been deleted meanwhile
}

// attended gives the ticket that a hook waits for, and a channel that is closed
// when nothing may start for its container any more. A hook that outlived an
// earlier daemon finds its place again by the time since which it waits.
func (p *pacer) attended(h gate.Hello) (*throttle.Ticket, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[h.PodUID]
	if r == nil {
		namespace, name := splitTitle(h.Name)
		r = newRecord(&api.PodSandbox{Uid: h.PodUID, Namespace: namespace, Name: name})
		p.records[h.PodUID] = r
	}
	c := r.containers[h.ContainerID]
	if c == nil {
		c = r.create(&api.Container{Id: h.ContainerID}, time.Now())
	}
	t := p.limiter.Lookup(r.uid)
	if t != nil {
		if state, reason := t.Status(); state != throttle.Gone || reason == throttle.Deleted {
			return t, c.gone
		}
	}
	pod, _ := p.watched(r.uid)
	now := time.Now()
	return p.joinGroupedLocked(now, r, pod, throttle.Request{
		UID: r.uid, Name: r.title(), Flow: r.namespace, Priority: pod.Priority, MaxWait: pod.ActiveDeadline / 10, Arrived: h.Since,
		Repeats: r.exits[c.name].repeats,
	}), c.gone
}

// left forgets a container of which only its hook has ever told.
func (p *pacer) left(h gate.Hello) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[h.PodUID]
	if r == nil {
		return
	}
	if c := r.containers[h.ContainerID]; c != nil && c.name == "" {
		r.remove(c.id)
	}
	p.forgetLocked(r)
}
