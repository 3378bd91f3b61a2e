package runtimetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// undoTimeout is the longest time of the events that undo a failed request.
const undoTimeout = time.Minute

// ContainerSpec describes a container.
type ContainerSpec struct {
	// Name is the container's name in its pod.
	Name string
	// Args are the program, an absolute path or found in this process's PATH, and its arguments. It gets no
	// environment but PATH.
	Args []string
	// Env is the environment that plugins see. The process does not get it.
	Env []string
	// Stdout gets the standard and error output; nil discards it. Writes come from one
	// goroutine at a time, and end before the container counts as exited.
	Stdout io.Writer
	// Run takes the place of Args in memory. Its context ends when the container is stopped, and it returns the exit code.
	Run func(context.Context) int
}

// State is the stage of a container's life.
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
	// Pid is the pid of the process while it runs, else 0.
	Pid int
	// ExitCode is the exit code of an exited container: 128 plus the signal if a signal killed it, and 128 if it
	// never ran.
	ExitCode                         int
	CreatedAt, StartedAt, FinishedAt time.Time
}

// Container is a container of a pod. Pod.CreateContainer makes it. It is safe for concurrent use.
type Container struct {
	pod    *Pod
	id     string
	spec   ContainerSpec
	hooks  []*api.Hook
	exited chan struct{} // closed once the status says Exited

	mu sync.Mutex
	// guarded by mu
	status   Status
	starting bool
	removed  bool
	process  task // while it runs
}

// Hooks returns the container's createRuntime hooks. They must not be changed.
func (c *Container) Hooks() []*api.Hook { return c.hooks }

// CreateContainer makes a container. It wraps the error of a plugin that refuses the container, whose Stop- and
// RemoveContainer events have been sent by then. It blocks while the plugins do. The sandbox must be ready.
func (p *Pod) CreateContainer(ctx context.Context, spec ContainerSpec) (*Container, error) {
	c := &Container{pod: p, id: p.runtime.newID(p.spec.UID), spec: spec, exited: make(chan struct{}), status: Status{State: Created, CreatedAt: time.Now()}}
	c.spec.Args = slices.Clone(spec.Args)
	s, ctx, end, err := p.runtime.begin(ctx)
	if err == nil {
		defer end()
		err = c.create(ctx, s)
	}
	if err != nil {
		return nil, c.wrap("create", err)
	}
	return c, nil
}

// wrap adds to an error the name of its request.
func (c *Container) wrap(request string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s container %s of pod %s/%s: %w", request, c.spec.Name, c.pod.spec.Namespace, c.pod.spec.Name, err)
}

func (c *Container) create(ctx context.Context, s *session) error {
	if !c.pod.ready() {
		return fmt.Errorf("sandbox %q is not running", c.pod.id)
	}
	if len(c.spec.Args) == 0 && !c.pod.runtime.opts.InMemory {
		return errors.New("no arguments")
	}
	unblock := s.relay.nri.keepFromSync()
	adjust, err := s.relay.createContainer(ctx, c)
	if err == nil {
		c.hooks, err = hooksOf(adjust)
	}
	if err == nil {
		c.pod.runtime.mu.Lock()
		c.pod.runtime.containers[c.id] = c
		c.pod.runtime.mu.Unlock()
	}
	unblock()
	if err == nil {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	s.relay.removeContainer(undo, c)
	return fmt.Errorf("failed to get NRI adjustment for container: %w", downCause(ctx, err))
}

// ID is the container's id, 64 hex digits.
func (c *Container) ID() string { return c.id }

// Status returns a copy of the container's status.
func (c *Container) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

// Wait waits until the container has exited or its start has failed, or until ctx ends, and returns the status. A
// container that is removed before it was started never exits.
func (c *Container) Wait(ctx context.Context) (Status, error) {
	select {
	case <-c.exited:
		return c.Status(), nil
	case <-ctx.Done():
		return c.Status(), c.wrap("wait for", context.Cause(ctx))
	}
}

func (c *Container) stored() bool {
	c.pod.runtime.mu.Lock()
	defer c.pod.runtime.mu.Unlock()
	return c.pod.runtime.containers[c.id] == c
}

// message is the container as plugins see it. Each call returns a new copy.
func (c *Container) message() *api.Container {
	stored := c.stored()
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.messageLocked()
	if !stored { // while the container is being created, containerd has no status for it
		m.State = api.ContainerState_CONTAINER_UNKNOWN
	}
	return m
}

func (c *Container) messageLocked() *api.Container {
	wall := func(t time.Time) int64 { return c.pod.runtime.wall(t).UnixNano() }
	m := &api.Container{
		Id: c.id, PodSandboxId: c.pod.id, Name: c.spec.Name, Env: c.spec.Env,
		Linux: &api.LinuxContainer{CgroupsPath: c.pod.cgroup(c.id)},
		Pid:   uint32(c.status.Pid), CreatedAt: wall(c.status.CreatedAt),
	}
	switch c.status.State {
	case Created:
		m.State = api.ContainerState_CONTAINER_CREATED
	case Running:
		m.State = api.ContainerState_CONTAINER_RUNNING
	case Exited: // containerd leaves the state UNKNOWN
		m.FinishedAt, m.ExitCode = wall(c.status.FinishedAt), int32(c.status.ExitCode)
	}
	if !c.status.StartedAt.IsZero() {
		m.StartedAt = wall(c.status.StartedAt)
	}
	return m
}

// cgroup is the OCI cgroups path that containerd gives to id.
func (p *Pod) cgroup(id string) string { return path.Join(p.spec.CgroupParent, id) }

// list returns what a plugin synchronises with: all sandboxes, and the containers that have not exited, oldest first.
func (r *Runtime) list() ([]*api.PodSandbox, []*api.Container) {
	var pods []*api.PodSandbox
	for _, p := range r.Pods() {
		pods = append(pods, p.message())
	}
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.containers))
	r.mu.Unlock()
	var containers []*api.Container
	for _, c := range all {
		if m := c.message(); m.State != api.ContainerState_CONTAINER_UNKNOWN {
			containers = append(containers, m)
		}
	}
	slices.SortFunc(containers, func(a, b *api.Container) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.Id, b.Id))
	})
	return pods, containers
}
