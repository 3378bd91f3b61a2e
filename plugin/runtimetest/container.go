package runtimetest

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// ContainerSpec is what a container is made from.
type ContainerSpec struct {
	// Name is the container's name in its pod.
	Name string
	// Args are the program, an absolute path or found in PATH, and its arguments.
	Args []string
	// Env is the environment, KEY=VALUE. PATH is this process's if it is not in there.
	Env []string
	// Stdout gets the standard and error output; nil discards it. Writes come from one
	// goroutine at a time, and end before the container counts as exited.
	Stdout              io.Writer
	Labels, Annotations map[string]string
}

// State is where a container is in its life.
type State string

// The states of a container. It stays Created while it is being started.
const (
	Created State = "Created"
	Running State = "Running"
	Exited  State = "Exited"
)

// Status is a container at one moment.
type Status struct {
	State State
	// Pid is the process's while it runs, else 0.
	Pid int
	// ExitCode is that of an exited container: 128 plus the signal if one killed it, and
	// 128 with Reason StartError if it never ran.
	ExitCode int
	// Reason is StartError, or empty.
	Reason string
	// Message is the error of a failed start.
	Message                          string
	CreatedAt, StartedAt, FinishedAt time.Time
}

// processSpec is what runs, after the plugins' adjustments. It does not change
// once the container is in the store.
type processSpec struct {
	args, env   []string
	annotations map[string]string
	hooks       []*api.Hook
}

// Container is a container of a pod. It is made by Pod.CreateContainer and safe for
// concurrent use.
type Container struct {
	pod     *Pod
	id      string
	spec    ContainerSpec
	process processSpec
	exited  chan struct{} // closed once the status says Exited

	mu sync.Mutex
	// guarded by mu
	status   Status
	starting bool
	removing bool
	task     *task // nil before and after its process
}

func (c *Container) bundle() string { return filepath.Join(c.pod.runtime.bundles(), c.id) }

// ID is the container's id, 64 hex digits.
func (c *Container) ID() string { return c.id }

// Status returns a copy of the container's status.
func (c *Container) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Exited is closed once the container has exited, or its start has failed. A container
// that is removed before it was started never exits.
func (c *Container) Exited() <-chan struct{} { return c.exited }

// Wait waits until the container has exited, or until ctx ends, and returns the status.
func (c *Container) Wait(ctx context.Context) (Status, error) {
	select {
	case <-c.exited:
		return c.Status(), nil
	case <-ctx.Done():
		return c.Status(), fmt.Errorf("wait for container %s of pod %s/%s to exit: %w", c.spec.Name, c.pod.spec.Namespace, c.pod.spec.Name, context.Cause(ctx))
	}
}
