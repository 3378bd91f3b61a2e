package demo

import (
	"context"
	"time"
)

// node runs the pods of a herd. It is safe for concurrent use.
type node interface {
	// runPod creates a pod's sandbox. An attempt above 0 also removes the remains of earlier
	// attempts.
	runPod(ctx context.Context, name, uid string, attempt int) (pod, error)
	// clear stops and removes all pods, and waits until they are gone.
	clear(ctx context.Context) error
	// startDaemon starts the daemon on the node's NRI socket, and returns when the daemon paces
	// pods. stop stops it.
	startDaemon(ctx context.Context, limit int) (stop func(context.Context) error, err error)
	// close ends and removes everything that was started for the node.
	close(ctx context.Context) error
}

// pod is a sandbox.
type pod interface {
	// create creates the pod's container for the given attempt, from 0.
	create(ctx context.Context, attempt int) (container, error)
}

// container is one life of a pod's only container.
type container interface {
	// start returns when the process has started, which takes as long as a plugin makes it wait.
	start(ctx context.Context) error
	// stop sends SIGTERM, and SIGKILL after stopGrace, and waits.
	stop(ctx context.Context) error
	// exited reports whether the process has ended, and when.
	exited(ctx context.Context) (at time.Time, yes bool, err error)
	// output returns what the process has written so far.
	output() (string, error)
	// cpu returns the CPU time used so far, or 0 if it cannot be read.
	cpu() time.Duration
}
