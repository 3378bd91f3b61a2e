package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// undoTimeout bounds the events that undo a request which failed.
const undoTimeout = time.Minute

// CreateContainer makes a container. The error of a plugin that refuses it is wrapped;
// its Stop- and RemoveContainer events have been sent then. It blocks while the
// plugins do. The sandbox must be ready.
func (p *Pod) CreateContainer(ctx context.Context, spec ContainerSpec) (*Container, error) {
	c, err := p.createContainer(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("create container %s of pod %s/%s: %w", spec.Name, p.spec.Namespace, p.spec.Name, err)
	}
	return c, nil
}

func (p *Pod) createContainer(ctx context.Context, spec ContainerSpec) (_ *Container, err error) {
	s, ctx, end, err := p.runtime.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if !p.stored() || !p.Ready() {
		return nil, fmt.Errorf("sandbox %q is not running", p.id)
	}
	if len(spec.Args) == 0 {
		return nil, errors.New("no arguments")
	}
	c := newContainer(p, spec)
	defer func() {
		if err != nil {
			c.undo(ctx, s)
		}
	}()
	defer s.relay.nri.BlockPluginSync().Unblock()

	adjust, err := s.relay.createContainer(ctx, p, c.message())
	if err != nil {
		return nil, fmt.Errorf("failed to get NRI adjustment for container: %w", downCause(ctx, err))
	}
	if err := c.process.adjust(adjust); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.bundle(), 0o700); err != nil {
		return nil, fmt.Errorf("make the bundle: %w", err)
	}
	p.runtime.mu.Lock()
	p.runtime.containers[c.id] = c
	p.runtime.mu.Unlock()
	s.relay.postCreateContainer(ctx, p, c.message())
	return c, nil
}

func newContainer(p *Pod, spec ContainerSpec) *Container {
	spec.Labels, spec.Annotations = maps.Clone(spec.Labels), maps.Clone(spec.Annotations)
	c := &Container{pod: p, id: newID(), spec: spec, exited: make(chan struct{})}
	c.status = Status{State: Created, CreatedAt: time.Now()}
	c.process = processSpec{
		args:        slices.Clone(spec.Args),
		env:         slices.Clone(spec.Env),
		annotations: merged(p.criAnnotations("container"), map[string]string{criContainerName: spec.Name}),
	}
	if !slices.ContainsFunc(spec.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }) {
		c.process.env = append(c.process.env, "PATH="+os.Getenv("PATH"))
	}
	return c
}

// undo sends the events that follow a refused create.
func (c *Container) undo(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	s.relay.stopContainer(ctx, c.pod, c.undoMessage())
	s.relay.removeContainer(ctx, c.pod, c.undoMessage())
}
