package demo

import (
	"context"
	"time"
)

// node is where the pods of a herd run. It is safe for concurrent use.
type node interface {
	// runPod makes a pod's sandbox. An attempt above 0 also removes what the ones
	// before it left.
	runPod(ctx context.Context, name, uid string, attempt int) (pod, error)
	// clear stops and removes all pods. It blocks until they are gone.
	clear(ctx context.Context) error
	// startDaemon starts the daemon on the node's NRI socket, and returns when it
	// paces. What is returned stops it.
	startDaemon(ctx context.Context, limit int) (stop func(context.Context) error, err error)
	// describe says in a few words what runs the pods.
	describe() string
	// close ends everything that was started for the node, and removes it.
	close(ctx context.Context) error
}

// pod is a sandbox.
type pod interface {
	// create makes the pod's container for the given attempt, from 0.
	create(ctx context.Context, attempt int) (container, error)
}

// container is one life of a pod's only container.
type container interface {
	// start returns when the process has started, which takes as long as a plugin
	// makes it wait.
	start(ctx context.Context) error
	// stop sends SIGTERM, and SIGKILL after stopGrace, and waits.
	stop(ctx context.Context) error
	// exited says whether, and when, the process has ended.
	exited(ctx context.Context) (at time.Time, yes bool, err error)
	// output is what the process has written so far.
	output() (string, error)
	// cpu is the CPU time used so far; 0 when there is none to read.
	cpu() time.Duration
}
