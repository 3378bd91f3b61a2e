package admin

import (
	"context"
	"errors"
)

// ErrUnknownPod is wrapped by the error about a pod that neither waits nor starts, and did neither recently.
var ErrUnknownPod = errors.New("not known on this node: it neither waits nor starts, and did neither lately")

// ErrStandby is wrapped by the error of Provider.Ready while another daemon paces the pods of the node.
var ErrStandby = errors.New("another daemon paces the pods of this node")

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
