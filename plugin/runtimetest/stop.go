package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Stop ends the container's process: SIGTERM, and after grace SIGKILL; at once SIGKILL if
// grace is 0. It returns when the process is gone. A container that does not run is left as
// it is, also while its hooks wait. It may be called again.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	s, ctx, end, err := c.pod.runtime.begin(ctx)
	if err == nil {
		defer end()
		if !c.stored() {
			return nil
		}
		defer s.relay.nri.BlockPluginSync().Unblock()
		err = c.kill(ctx, grace)
	}
	if err != nil {
		return fmt.Errorf("stop container %s of pod %s/%s: %w", c.spec.Name, c.pod.spec.Namespace, c.pod.spec.Name, err)
	}
	s.relay.stopContainer(ctx, c.pod, c.message())
	return nil
}

// Remove kills the container's process if it runs, and removes the container. It is an
// error while the container is being started. It may be called again.
func (c *Container) Remove(ctx context.Context) error {
	s, ctx, end, err := c.pod.runtime.begin(ctx)
	if err == nil {
		defer end()
		defer s.relay.nri.BlockPluginSync().Unblock()
		err = c.remove(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("remove container %s of pod %s/%s: %w", c.spec.Name, c.pod.spec.Namespace, c.pod.spec.Name, err)
	}
	return nil
}

func (c *Container) remove(ctx context.Context, s *session) error {
	if !c.stored() {
		return nil
	}
	if err := c.kill(ctx, 0); err != nil {
		return err
	}
	if err := c.setRemoving(); err != nil {
		return err
	}
	s.relay.removeContainer(ctx, c.pod, c.message())
	if err := os.RemoveAll(c.bundle()); err != nil {
		return fmt.Errorf("remove the bundle: %w", err)
	}
	c.pod.runtime.mu.Lock()
	defer c.pod.runtime.mu.Unlock()
	delete(c.pod.runtime.containers, c.id)
	return nil
}

func (c *Container) setRemoving() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.status.State == Running:
		return errors.New("container is still running")
	case c.starting:
		return errors.New("container is in starting state, can't be removed")
	case c.removing:
		return errors.New("container is already in removing state")
	}
	c.removing = true
	return nil
}

// kill ends the process of a running container and waits for that.
func (c *Container) kill(ctx context.Context, grace time.Duration) error {
	c.mu.Lock()
	t := c.task
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	if grace > 0 {
		if err := t.process.signal(syscall.SIGTERM, false); err != nil {
			return err
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.exited:
			return nil
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := t.process.signal(syscall.SIGKILL, true); err != nil {
		return err
	}
	select {
	case <-c.exited:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// destroy kills the process, for a runtime that is being stopped.
func (c *Container) destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.task == nil {
		return nil
	}
	return c.task.process.signal(syscall.SIGKILL, true)
}

func (c *Container) stored() bool {
	c.pod.runtime.mu.Lock()
	defer c.pod.runtime.mu.Unlock()
	return c.pod.runtime.containers[c.id] == c
}
