package gate

import (
	"context"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Hello is what a hook says of itself. PodUID and ContainerID are never empty. Its
// deadline has a monotonic reading: a wall clock that is set changes nothing.
type Hello = wire.Hello

// Verdict decides a start.
type Verdict struct {
	// Go lets the process start. Without it the hook fails, and nothing starts.
	Go bool
	// Reason is a reason word. Without Go it reaches the reader of the pod's
	// events, so it may go on after a colon with words for that reader; for the
	// reasons that this package explains, the server adds them.
	Reason reasons.Reason
}

// The reasons that the limiter never gives.
const (
	// Replaced: nothing starts, for a newer hook waits for the same container.
	Replaced reasons.Reason = "Replaced"
	// NotUnderstood: the hook goes, for its hello made no sense.
	NotUnderstood reasons.Reason = "NotUnderstood"
	// TurnNear: the pod leaves the waiting room without a slot, and may wait in the gate.
	TurnNear reasons.Reason = "TurnNear"
	// RoomTimeout: the pod's turn did not come while it could wait in the waiting room.
	RoomTimeout reasons.Reason = "RoomTimeout"
	// RoomShut: no pod may wait in the waiting room.
	RoomShut reasons.Reason = "RoomShut"
	// NodePressure: the pod waits by being refused, for kubelet may evict it.
	NodePressure reasons.Reason = "NodePressure"
	// NodeShutdown: the node is being shut down, and nothing starts that has to wait.
	NodeShutdown reasons.Reason = "NodeShutdown"
)

// words are what the reader of the pod's events is told beside the reason.
var words = map[reasons.Reason]string{
	reasons.Deleted:     "the pod was deleted while it waited for its turn to start",
	NodeShutdown:        "the node is being shut down",
	NodePressure:        "the node is short of memory, disk or process IDs: kubelet could not evict a pod that waits here; it keeps its place in the queue, and kubelet tries again",
	RoomTimeout:         "its turn did not come within the time that kubelet gives a sandbox; it keeps its place in the queue, and kubelet tries again",
	Replaced:            "a newer attempt to start this container waits in its place",
	reasons.GateExpired: "its turn to start did not come in time; it keeps its place in the queue, and the kubelet tries again",
}

// answer is the line that carries v.
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

// SendTurn is how a [Backend] sends a hook its turn.
type SendTurn func(leaveAt time.Time, position int, pace time.Duration)

// Backend decides the starts that wait at the gate. Its methods are called from
// many goroutines at once.
type Backend interface {
	// Wait blocks until the start is decided, or until ctx ends because the hook
	// went away or the server stops. It must return soon after that, with an error
	// if there is no verdict.
	//
	// sendTurn sends the time at which the hook leaves if this daemon goes away, and
	// its position among those that wait, counted from 1, and the time between two of them
	// that leave. It may be called any number of times and from any
	// goroutine, never blocks, and does nothing once Wait has returned. Of calls
	// in quick succession only the last may reach the hook; that one does, also if
	// Wait returns right after it.
	//
	// A verdict to go may not reach the hook, which went away meanwhile: no process
	// starts, and Wait is called again when the container is tried again.
	//
	// An error while ctx lives, or a panic, means that nothing can be decided now:
	// it is logged, and the hook asks again.
	Wait(ctx context.Context, h Hello, sendTurn SendTurn) (Verdict, error)
	// Alive returns nil soon if starts are being decided, and an error if that did
	// not show before ctx ended. While hooks wait it is called every few seconds;
	// they are told of each nil, and leave one by one without them.
	Alive(ctx context.Context) error
}
