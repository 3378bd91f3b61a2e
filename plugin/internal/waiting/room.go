package waiting

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// roomAhead is by how much before its turn a pod leaves the waiting room: the time in
	// which its sandbox is made, and images that are not large are pulled.
	roomAhead = 20 * time.Second
	// roomRound bounds the time between two looks at who may leave.
	roomRound = time.Second
	// roomKnownWithin is how long the room waits for the pod watch to know a pod. No lock
	// is held meanwhile.
	roomKnownWithin = 3 * time.Second
)

// Room is the waiting room: pods wait there before their sandbox exists, in the CNI plugin
// pacemaker-cni. A pod whose containers can wait in the gate leaves it when its turn is near, any
// other with its slot. Safe for concurrent use.
type Room struct {
	starts   *starts.Starts
	observer *observe.Observer
	pods     starts.Source // nil: standalone
	gate     *Gate
	shut     atomic.Value // a string: why no pod may wait there; empty: the room is open

	mu      sync.Mutex
	waiters map[string][]*roomWaiter // by UID; after a daemon stood still, of more than one process of a pod
}

// roomWaiter is a process that waits in the room for its pod.
type roomWaiter struct {
	ticket *throttle.Ticket
	near   bool          // it leaves when its turn is near, not when it has its slot
	out    chan struct{} // closed when its turn is near
}

func newRoom(o Options, g *Gate) *Room {
	return &Room{
		starts: o.Starts, observer: o.Observer, pods: o.Pods, gate: g, waiters: map[string][]*roomWaiter{},
	}
}

func (r *Room) enter(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := w.ticket.UID()
	r.waiters[uid] = append(slices.Clone(r.waiters[uid]), w) // a round may read what all gave it
}

func (r *Room) leave(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := w.ticket.UID()
	left := slices.DeleteFunc(slices.Clone(r.waiters[uid]), func(o *roomWaiter) bool { return o == w })
	if len(left) == 0 {
		delete(r.waiters, uid)
		return
	}
	r.waiters[uid] = left
}

func (r *Room) all() map[string][]*roomWaiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.waiters)
}

// Waiters returns how many pods wait in the room.
func (r *Room) Waiters() int { return len(r.all()) }

// Holds reports whether a pod waits in the room.
func (r *Room) Holds(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiters[uid]) > 0
}

// Shut lets no pod wait in the room for a reason, or, with an empty one, opens it again.
func (r *Room) Shut(why string) { r.shut.Store(why) }

// Round lets pods out of the room whose turn is near, in the order of the queue. It marks those
// of held that wait in the room as present, for each is to be told its turn, and gives the time
// at which to look again though nothing happens; zero: the room is empty.
func (r *Room) Round(now time.Time, held throttle.Snapshot) (again time.Time) {
	waiters := r.all()
	if len(waiters) == 0 {
		return time.Time{}
	}
	full := r.starts.Hooks.Frozen() // those that come later may be before
	for i := range held.Waiting {
		v := &held.Waiting[i]
		for _, w := range waiters[v.UID] {
			v.Present = true
			w.ticket.KeepAlive(now)
			if full || !w.near || isClosed(w.out) {
				continue
			}
			d := w.ticket.Reserve(now, min(roomAhead, r.gate.Timeout))
			if d.Admitted {
				close(w.out)
			}
			full = d.Reason == reasons.GateRoom // and for those behind it
		}
	}
	return now.Add(roomRound)
}

// Wait blocks until a pod may have its sandbox. It is [gate.Backend]'s for a hello from the room.
func (r *Room) Wait(ctx context.Context, h gate.Hello, sendTurn gate.SendTurn) (gate.Verdict, error) {
	pod, known := r.await(ctx, h.PodUID)
	if err := ctx.Err(); err != nil {
		return gate.Verdict{}, err
	}
	if !r.starts.Valve.Holds() {
		return gate.Verdict{Go: true, Reason: r.starts.Valve.WhyUnheld()}, nil
	}
	name := observe.PodName(h.Name)
	t := r.starts.Arrive(time.Now(), pods.Pod{UID: h.PodUID, Namespace: name.Namespace, Name: name.Name}, pod, known, h.Since)
	if t == nil {
		return gate.Verdict{Go: true, Reason: reasons.Exempt}, nil
	}
	w := &roomWaiter{ticket: t, near: r.mayUseGate(pod, known), out: make(chan struct{})}
	if !w.near {
		t.Wait(time.Now())
		defer func() { t.StopWaiting(time.Now()) }()
	}
	r.enter(w)
	defer r.leave(w)
	r.starts.Wake()
	began := time.Now()
	logged := false
	v, err := r.gate.await(ctx, h, t, w.out, sendTurn, func(state starts.ValveState, told bool) (gate.Verdict, bool) {
		v, ends := r.ended(state, w, told)
		if !ends && told && !logged {
			r.waits(t)
			logged = true
		}
		return v, ends
	}, func() gate.Verdict { return gate.Verdict{Reason: gate.RoomTimeout} })
	reason, _, _ := strings.Cut(string(v.Reason), ":")
	r.observer.LeftRoom(cmp.Or(reasons.Reason(reason), observe.HungUp), time.Since(began))
	return v, err
}

// await returns what the pod watch knows of a pod, if need be after a moment.
func (r *Room) await(ctx context.Context, uid string) (podwatch.Pod, bool) {
	switch {
	case r.pods == nil:
		return podwatch.Pod{}, false
	case !r.pods.Healthy():
		return r.pods.Get(uid)
	}
	ctx, cancel := context.WithTimeout(ctx, roomKnownWithin)
	defer cancel()
	return r.pods.Await(ctx, uid)
}

// mayUseGate reports whether all containers of a pod can wait in the gate.
func (r *Room) mayUseGate(pod podwatch.Pod, known bool) bool {
	if r.gate.Off() != "" || !known || pod.RuntimeClass != "" {
		return false
	}
	for name, c := range pod.Containers {
		if c.Kind != podwatch.Ephemeral && !pod.StartsAgain(name) {
			return false
		}
	}
	return true
}

// ended returns the answer to a process that waits no longer. told: it has its turn, so a round has
// looked whether its pod may leave.
func (r *Room) ended(state starts.ValveState, w *roomWaiter, told bool) (v gate.Verdict, ends bool) {
	shut, _ := r.shut.Load().(string)
	switch {
	case isClosed(w.ticket.Decided()):
		return decided(w.ticket, nil), true
	case state.LetGo:
		return gate.Verdict{Go: true, Reason: r.starts.Valve.WhyUnheld()}, true
	case state.Shutdown:
		return gate.Verdict{Reason: gate.NodeShutdown}, true
	case isClosed(w.out):
		return gate.Verdict{Go: true, Reason: gate.TurnNear}, true
	case shut != "" && told:
		return gate.Verdict{Reason: gate.RoomShut + reasons.Reason(": "+shut)}, true
	default:
		return gate.Verdict{}, false
	}
}

// waits logs that a pod waits in the room.
func (r *Room) waits(t *throttle.Ticket) {
	now := time.Now()
	v, ok := r.starts.Limiter.View(now, t.UID())
	if !ok || v.State != throttle.Waiting {
		return
	}
	r.observer.Waits(now, observe.Wait{
		UID: v.UID, Name: v.Name, Decision: throttle.Decision{Reason: v.Reason, Held: v.Held, Ahead: v.Ahead},
		Since: v.Arrived, Message: "waits in the waiting room", Fields: logrus.Fields{},
	})
}
