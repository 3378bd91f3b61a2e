package admin

import (
	"context"
	"errors"
)

// ErrUnknownPod is wrapped by the error about a pod that does not wait, does not
// start, and did neither lately.
var ErrUnknownPod = errors.New("not known on this node: it neither waits nor starts, and did neither lately")

// ErrStandby is wrapped by the error of Ready while another daemon paces the pods of
// the node.
var ErrStandby = errors.New("another daemon paces the pods of this node")

// Provider is the daemon, as the servers ask it. Its methods are called
// concurrently; they must not block, but for the moment that measuring takes.
type Provider interface {
	// Status returns everything but Ready and NotReady, which the server fills.
	Status() Status
	// Why explains the latest start of a pod. The error about an unknown pod wraps ErrUnknownPod.
	Why(namespace, name string) (Why, error)
	// Costs returns what was learned of starts.
	Costs() Costs
	// Alive returns nil soon if the daemon works on, and an error if that did not show
	// before ctx ended. It is the one method that may block, until then.
	Alive(ctx context.Context) error
	// Ready returns nil when pods are paced: connected, synchronized, configured;
	// else why they are not; ErrStandby where another daemon paces them.
	Ready() error
	// Timeline returns the points of the last minutes, the oldest first.
	Timeline() []Point
}
