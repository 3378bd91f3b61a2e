package gate

import (
	"context"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Hello is the first line of a hook. PodUID and ContainerID are never empty. Deadline
// has a monotonic clock reading, so it stays right when the wall clock is set.
type Hello = wire.Hello

// Verdict is the decision on a start that waits in the gate.
type Verdict struct {
	// Go lets the process start. If it is false, the hook fails and nothing starts.
	Go bool
	// Reason is a reason word. If Go is false, it appears in the events of the pod
	// and may have an explanation after a colon. For the reasons of this package, the
	// server adds the explanation.
	Reason reasons.Reason
}

// Reasons that do not come from the limiter.
const (
	// Replaced: nothing starts, because the container was removed, or replaced by a newer one.
	Replaced reasons.Reason = "Replaced"
	// NotUnderstood: the process starts, because the hello of its hook was malformed.
	NotUnderstood reasons.Reason = "NotUnderstood"
	// TurnNear: the pod leaves the waiting room without a slot, and may wait in the gate.
	TurnNear reasons.Reason = "TurnNear"
	// RoomTimeout: the turn of the pod did not come while it could wait in the waiting room.
	RoomTimeout reasons.Reason = "RoomTimeout"
	// RoomShut: no pod may wait in the waiting room.
	RoomShut reasons.Reason = "RoomShut"
	// NodePressure: the pod must not wait in the gate, because kubelet may have to evict it.
	NodePressure reasons.Reason = "NodePressure"
	// NodeShutdown: the node is being shut down, and no pod that has to wait starts.
	NodeShutdown reasons.Reason = "NodeShutdown"
	// Order: kubelet starts another container of the pod first, which waits. It is no answer to a hook: the container is
	// refused.
	Order reasons.Reason = "Order"
)

// words explain reasons to the reader of the pod's events.
var words = map[reasons.Reason]string{
	reasons.Deleted:     "the pod was deleted while it waited for its turn to start",
	NodeShutdown:        "the node is being shut down",
	NodePressure:        "the node is short of memory, disk or process IDs: kubelet could not evict a pod that waits here; it keeps its place in the queue, and kubelet tries again",
	RoomTimeout:         "its turn did not come within the time that kubelet gives a sandbox; it keeps its place in the queue, and kubelet tries again",
	Replaced:            "the container was removed, or a newer attempt to start it waits in its place",
	reasons.GateExpired: "its turn to start did not come in time; it keeps its place in the queue, and kubelet tries again",
}

// answer returns the answer that is sent for v.
func (v Verdict) answer() wire.Answer {
	if v.Go {
		return wire.Answer{Kind: wire.Go, Reason: string(v.Reason)}
	}
	reason := string(v.Reason)
	if w := words[v.Reason]; w != "" {
		reason += ": " + w
	}
	return wire.Answer{Kind: wire.Abort, Reason: reason}
}

// SendForecast sends a waiting hook when it leaves if this daemon goes away, its place among the hooks that wait, counted
// from 1, and pace, the time between two hooks that leave.
type SendForecast func(leaveAt time.Time, place int, pace time.Duration)

// Backend decides the starts that wait in the gate. Its methods must be safe for
// concurrent use.
type Backend interface {
	// Wait blocks until the start is decided, or until ctx ends because the hook
	// went away or the server stops. It must return soon after ctx ends, with an
	// error if there is no verdict.
	//
	// Wait may call sendForecast any number of times and from any goroutine, but not after
	// it has returned. sendForecast blocks while the hook does not read. After 2 s, or 4 s
	// beside an alive line, the server gives up the hook and ctx ends.
	//
	// A verdict may not reach a hook that went away meanwhile. Then no process starts,
	// and Wait is called again when the runtime tries the container again.
	//
	// An error before ctx ends, or a panic, means that the backend cannot decide now.
	// The server logs it, and the hook asks again.
	Wait(ctx context.Context, h Hello, sendForecast SendForecast) (Verdict, error)
	// Alive returns nil soon if starts are being decided, or an error if they are not
	// before ctx ends. While hooks wait, it is called every few seconds. After each nil
	// the hooks get an alive line; without alive lines they leave one by one.
	Alive(ctx context.Context) error
}
