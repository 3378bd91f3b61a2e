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

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// roomAhead is how long before its expected turn a pod leaves the waiting room: enough to make its sandbox and
	// to pull images that are not large.
	roomAhead = 20 * time.Second
	// roomRound is the longest time between two rounds while pods wait in the room.
	roomRound = time.Second
	// roomKnownWithin is how long the room waits for the pod watch to know a pod. No lock is held meanwhile.
	roomKnownWithin = 3 * time.Second
)

// Room is the waiting room. Pods wait there before their sandbox exists, in the CNI plugin pacemaker-cni.
// A pod whose containers can wait in the gate leaves the room when its turn is near, any other pod when it
// has its slot. It is safe for concurrent use, but calls of Round must not overlap.
type Room struct {
	*shared
	gate *Gate
	shut atomic.Value // a string: why no pod may wait in the room; empty if pods may

	mu      sync.Mutex
	waiters map[*roomWaiter]struct{}
}

// roomWaiter is a process that waits in the room for its pod. After the daemon hung, a pod may have more
// than one.
type roomWaiter struct {
	ticket   starts.Ticket
	early    bool          // it leaves when its pod has a reservation in the gate, not when it has its slot
	brief    bool          // it cannot wait at this moment
	yields   bool          // it lets others have the next slot; only Round uses it
	reserved chan struct{} // closed when its pod has that reservation
}

func newRoom(s *shared, g *Gate) *Room {
	return &Room{shared: s, gate: g, waiters: map[*roomWaiter]struct{}{}}
}

func (r *Room) enter(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters[w] = struct{}{}
}

func (r *Room) leave(w *roomWaiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiters, w)
}

// byPod returns the processes that wait, by the UID of their pod.
func (r *Room) byPod() map[string][]*roomWaiter {
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.waiters))
	r.mu.Unlock()
	waiters := make(map[string][]*roomWaiter, len(all))
	for _, w := range all {
		waiters[w.ticket.UID()] = append(waiters[w.ticket.UID()], w)
	}
	return waiters
}

// Pods returns which pods wait in the room, by UID.
func (r *Room) Pods() map[string]bool {
	all := map[string]bool{}
	for uid := range r.byPod() {
		all[uid] = true
	}
	return all
}

// Shut admits no pod to the room from now on, for the reason why; if why is empty, it admits pods again. It does not
// wake the processes that wait. They watch the folder of the CNI configurations, and leave by themselves when it
// changes. A process that does not leave is sent out when its turn is next computed.
func (r *Room) Shut(why string) { r.shut.Store(why) }

// Round lets the pods leave whose turn is near, in the order of the queue. waiting are the pods that wait, in
// that order. It returns which of them wait in the room, by UID, and when to call it again even if nothing
// happens, or zero if the room is empty.
func (r *Room) Round(now time.Time, waiting []throttle.TicketView) (inRoom map[string]bool, again time.Time) {
	waiters := r.byPod()
	if len(waiters) == 0 {
		return nil, time.Time{}
	}
	inRoom = make(map[string]bool, len(waiters))
	full, frozen := false, r.o.Starts.Frozen() // frozen: pods that have not come back yet may be first
	behind := false                            // one that leaves without its slot stays in the room, before the next ones
	for _, v := range waiting {
		for _, w := range waiters[v.UID] {
			inRoom[v.UID] = true
			switch {
			case frozen || isClosed(w.reserved):
				continue
			case !w.early:
				if w.yields != behind {
					w.yields = behind
					w.ticket.Yield(now, behind)
				}
				continue
			case full && !v.Overdue:
				continue
			}
			if !w.brief && v.WaitLeft > roomAhead && !v.Overdue && (v.Held.Policy == throttle.GroupKey{}) {
				behind = true
				continue // a brief one rather waits long in the gate: kubelet would warn of it
			}
			d := w.ticket.LeaveRoom(now, r.o.Gate.Timeout)
			if d.Granted {
				close(w.reserved)
			}
			// Full for the pods behind this one, too, but perhaps not for an overdue one.
			full = full || d.Reason == reasons.GateFull || d.Reason == reasons.Rate
			behind = behind || full
		}
	}
	return inRoom, now.Add(roomRound)
}

// wait is [Chooser.Wait] for a process of the room: it blocks until a pod may have its sandbox.
func (r *Room) wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	if why := r.o.Starts.Ends().HoldsNone; why != "" {
		return gate.Verdict{Go: true, Reason: why}, nil
	}
	pod := r.identify(ctx, h.PodUID)
	if err := ctx.Err(); err != nil {
		return gate.Verdict{}, err
	}
	who := podOf(h)
	who.Static = wire.IsStatic(h.PodUID)
	early := r.mayUseGate(pod)
	p, waits := r.o.Starts.EnterRoom(time.Now(), who, pod, h.Since, h.Deadline, early)
	if !waits {
		return gate.Verdict{Go: true, Reason: reasons.Exempt}, nil
	}
	defer p.Leave()
	w := &roomWaiter{ticket: p.Ticket, early: early, brief: h.Brief, reserved: make(chan struct{})}
	r.enter(w)
	defer r.leave(w)
	r.o.Starts.Wake()
	began := time.Now()
	logged := false
	v, err := await(ctx, h, p, w.reserved, sendForecast, func(now starts.Outlook, sent bool) (gate.Verdict, bool) {
		v, ends := r.ended(now, w, sent)
		if !ends && sent && !logged {
			r.log(h)
			logged = true
		}
		return v, ends
	}, func() gate.Verdict { return gate.Verdict{Reason: gate.RoomTimeout} })
	reason, _, _ := strings.Cut(string(v.Reason), ":")
	r.o.Observer.Report(observe.LeftRoom{Reason: cmp.Or(reasons.Reason(reason), observe.HungUp), Waited: time.Since(began)})
	return v, err
}

// identify returns what the pod watch knows of a pod. If the watch does not know it yet, it waits a moment.
func (r *Room) identify(ctx context.Context, uid string) podwatch.Pod {
	if r.o.Pods == nil || !r.o.Pods.Healthy() {
		return r.o.Starts.Known(uid)
	}
	ctx, cancel := context.WithTimeout(ctx, roomKnownWithin)
	defer cancel()
	pod, _ := r.o.Pods.Await(ctx, uid)
	return pod
}

// mayUseGate reports whether all containers of a pod can wait in the gate. After hooks have failed, pods of the room
// may be the only ones that can try the gate again.
func (r *Room) mayUseGate(pod podwatch.Pod) bool {
	return pod.IsKnown() && pod.RuntimeClass == "" && r.gate.mayFail(pod) && r.gate.offFor(time.Now(), pod.UID) == ""
}

// ended returns the answer to a process whose wait is over. sent reports whether the process was sent a forecast. One
// that was not is not sent away because the room is shut: a round must first decide whether its pod may leave.
func (r *Room) ended(now starts.Outlook, w *roomWaiter, sent bool) (v gate.Verdict, ends bool) {
	shut, _ := r.shut.Load().(string)
	switch {
	case now.State != throttle.Waiting:
		return decided(now, false), true
	case now.Ends.HoldsNone != "":
		return gate.Verdict{Go: true, Reason: now.Ends.HoldsNone}, true
	case now.Ends.Shutdown:
		return gate.Verdict{Reason: gate.NodeShutdown}, true
	case isClosed(w.reserved):
		return gate.Verdict{Go: true, Reason: gate.TurnNear}, true
	case shut != "" && sent:
		return gate.Verdict{Reason: gate.RoomShut + reasons.Reason(": "+shut)}, true
	default:
		return gate.Verdict{}, false
	}
}

// log logs that a pod waits in the room.
func (r *Room) log(h gate.Hello) {
	now := time.Now()
	if v, ok := r.o.Starts.View(now, h.PodUID); ok && v.State == throttle.Waiting {
		v = v.HeldBack()
		r.o.Observer.Report(observe.Waits{
			Made:     observe.Made{Pod: observe.Pod{UID: v.UID, Name: v.Name}, Sandbox: h.ContainerID},
			Decision: throttle.Decision{Reason: v.Reason, Held: v.Held, Ahead: v.Ahead}, Since: v.Since, At: now,
		})
	}
}
