package waiting

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
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

// Room is the pods that wait before their sandbox exists, in the CNI plugin pacemaker-cni. Safe
// for concurrent use.
type Room struct {
	starts *starts.Starts
	board  *turns.Board
	source starts.Source // nil: standalone
	gate   *Gate
	settle time.Duration

	mu   sync.Mutex
	pods map[string]*roomer // by UID; of several processes of a pod the latest
	open time.Time          // when the first may leave; zero: nobody came yet
	shut string             // why nobody may wait there; empty: it is open
}

// roomer is a process that waits in the room for its pod.
type roomer struct {
	t    *throttle.Ticket
	near bool          // it leaves when its turn is near, not when it has its slot
	out  chan struct{} // closed when it may leave
}

func newRoom(o Options, g *Gate) *Room {
	return &Room{
		starts: o.Starts, board: o.Board, source: o.Pods, gate: g,
		settle: o.Starts.Timing.Settle, pods: map[string]*roomer{},
	}
}

func (r *Room) enter(w *roomer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open.IsZero() {
		r.open = time.Now().Add(r.settle)
	}
	r.pods[w.t.UID()] = w
}

func (r *Room) leave(w *roomer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods[w.t.UID()] == w {
		delete(r.pods, w.t.UID())
	}
}

// Waiters is how many pods wait in the room.
func (r *Room) Waiters() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pods)
}

// Has tells whether a pod waits in the room.
func (r *Room) Has(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid] != nil
}

// Shut lets nobody wait in the room for a reason, or, with an empty one, lets pods wait again.
func (r *Room) Shut(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut = why
}

func (r *Room) shutFor() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shut
}

// Round lets pods out of the room whose turn is near, in the order of the queue. It marks those
// of held that wait in the room as present, for each is to be told its turn, and gives the time
// at which to look again though nothing happens; zero: nobody is there.
func (r *Room) Round(now time.Time, held throttle.Snapshot) (again time.Time) {
	waiters, opens := r.all()
	if len(waiters) == 0 {
		return time.Time{}
	}
	full := now.Before(opens)
	for i := range held.Waiting {
		v := &held.Waiting[i]
		w := waiters[v.UID]
		if w == nil {
			continue
		}
		v.Present = true
		w.t.KeepAlive(now)
		if full || !w.near || isClosed(w.out) {
			continue
		}
		d := w.t.Reserve(now, min(roomAhead, r.gate.Timeout))
		if d.Admitted {
			close(w.out)
		}
		full = d.Reason == throttle.GateRoom // nobody behind it has room either
	}
	return now.Add(roomRound)
}

// all gives who waits, and when the first may leave.
func (r *Room) all() (map[string]*roomer, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.pods), r.open
}

// Wait blocks until a pod may have its sandbox: near its turn where its containers can wait in
// the gate, else at its turn, with its slot. It is part of [gate.Backend].
func (r *Room) Wait(ctx context.Context, h gate.Hello, tell gate.Tell) (gate.Verdict, error) {
	pod, known := r.await(ctx, h.PodUID)
	if err := ctx.Err(); err != nil {
		return gate.Verdict{}, err
	}
	if !r.starts.Holds() {
		return gate.Verdict{Go: true, Reason: r.starts.WhyUnheld()}, nil
	}
	name := observe.PodName(h.Name)
	t := r.starts.Arrive(time.Now(), pods.Pod{UID: h.PodUID, Namespace: name.Namespace, Name: name.Name}, pod, known, h.Since)
	if t == nil {
		return gate.Verdict{Go: true, Reason: throttle.Exempt}, nil
	}
	w := &roomer{t: t, near: r.mayUseGate(pod, known), out: make(chan struct{})}
	if !w.near {
		t.Wait(time.Now())
		defer func() { t.StopWaiting(time.Now()) }()
	}
	r.enter(w)
	defer r.leave(w)
	r.starts.Wake()
	return r.wait(ctx, h, w, tell)
}

// await gives what the pod watch knows of a pod, if need be after a moment.
func (r *Room) await(ctx context.Context, uid string) (podwatch.Pod, bool) {
	switch {
	case r.source == nil:
		return podwatch.Pod{}, false
	case !r.source.Healthy():
		return r.source.Get(uid)
	}
	ctx, cancel := context.WithTimeout(ctx, roomKnownWithin)
	defer cancel()
	return r.source.Await(ctx, uid)
}

// mayUseGate tells whether all that a pod has to start can wait in the gate.
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

// wait waits until the ticket is decided, or its pod may leave the room.
func (r *Room) wait(ctx context.Context, h gate.Hello, w *roomer, tell gate.Tell) (gate.Verdict, error) {
	expiry := time.NewTimer(time.Until(h.Deadline) - expiryMargin)
	defer expiry.Stop()
	var said turns.Said
	for {
		state, changed := r.starts.Valve.Now()
		turn, moved := r.board.Of(w.t.UID())
		told := said.Changed(turn, h.Deadline)
		if told {
			tell(turn.LeaveAt(h.Deadline), turn.Position(), turn.Step(h.Deadline))
		}
		switch shut := r.shutFor(); {
		case state.LetGo:
			return gate.Verdict{Go: true, Reason: r.starts.WhyUnheld()}, nil
		case state.Shutdown:
			return shutOut(w.t, nil), nil
		case shut != "" && told: // the round in which it got its turn let it out, or did not
			return w.turnedAway(shut), nil
		}
		select {
		case <-w.t.Decided():
			return decided(w.t, nil), nil
		case <-w.out:
			return letUp, nil
		case <-expiry.C:
			return gate.Verdict{Reason: gate.RoomTimeout}, nil
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		case <-changed:
		case <-moved:
		}
	}
}

// letUp has a pod come up to wait near its turn.
var letUp = gate.Verdict{Go: true, Reason: "Reserved"}

// turnedAway is the answer where nobody may wait in the room.
func (w *roomer) turnedAway(why string) gate.Verdict {
	switch state, _ := w.t.Status(); {
	case state != throttle.Waiting:
		return decided(w.t, nil)
	case isClosed(w.out):
		return letUp
	default:
		return gate.Verdict{Reason: gate.RoomShut + throttle.Reason(": "+why)}
	}
}
