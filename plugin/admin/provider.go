package admin

import (
	"context"
	"errors"
	"time"
)

// ErrUnknownPod is wrapped by the error about a pod that neither waits nor starts, and did neither recently.
var ErrUnknownPod = errors.New("not known on this node: it neither waits nor starts, and did neither lately")

// ErrStandby is wrapped by the error of Provider.Ready while another daemon paces the pods of the node.
var ErrStandby = errors.New("another daemon paces the pods of this node")

// Switch is what an administrator changes at the socket. Its methods must be safe for concurrent use, and must not
// block, apart from the short time of a change.
type Switch interface {
	// SwitchOff puts the mode Disabled in force for a time span, in place of what an earlier call set, and returns its end.
	// 0 ends that at once, and returns the zero time. A new daemon is not switched off.
	SwitchOff(span time.Duration) (until time.Time)
	// Admit admits a pod that waits, by its UID, whatever the limits say. It returns false, and does nothing, if the pod
	// does not wait, or if the mode holds no pod.
	Admit(uid string) bool
}

// Provider is the daemon as the servers of this package need it. Its methods must be safe for concurrent use. Except
// for Alive they must not block, apart from the short time of a measurement.
type Provider interface {
	// Status returns the status without Ready and NotReady, which the server sets.
	Status() Status
	// Costs returns what the daemon learned about the costs of starts.
	Costs() Costs
	// Alive returns nil if the daemon makes decisions, and an error if it makes none before ctx ends. It may block
	// until then.
	Alive(ctx context.Context) error
	// Ready returns nil if the daemon paces pods: it is connected, synchronized and configured. Otherwise the error has
	// the reason, and names no pod, because every process on the node may read it. It wraps ErrStandby if another daemon
	// paces them.
	Ready() error
}
