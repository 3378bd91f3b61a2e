package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// startErrorCode is the exit code of a container whose start failed.
const startErrorCode = 128

// Start runs the hooks, then the container's process. It blocks while hooks run and plugins wait. After an error the
// container is Exited. A container can be started once.
func (c *Container) Start(ctx context.Context) error {
	s, ctx, end, err := c.pod.runtime.begin(ctx)
	if err == nil {
		defer end()
		err = c.setStarting()
		if err == nil {
			err = c.start(ctx, s)
			c.started(err)
		}
	}
	return c.wrap("start", err)
}

func (c *Container) setStarting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.removed:
		return errors.New("container was removed")
	case c.status.State != Created:
		return fmt.Errorf("container is in %s state", c.status.State)
	case c.starting:
		return errors.New("container is already in starting state")
	}
	c.starting = true
	return nil
}

// started ends the starting state. A failed start ends the container.
func (c *Container) started(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting = false
	if err != nil {
		c.exitLocked(startErrorCode)
	}
}

func (c *Container) exitLocked(code int) {
	c.process = nil
	c.pod.runtime.removeBundle(c.id)
	c.status.State, c.status.Pid, c.status.FinishedAt, c.status.ExitCode = Exited, 0, time.Now(), code
	close(c.exited)
}

func (c *Container) start(ctx context.Context, s *session) error {
	if !c.pod.ready() {
		return fmt.Errorf("sandbox %q is not running", c.pod.id)
	}
	if err := c.pod.makeBundle(c.id, "container", sizeOf(c.spec.Env)); err != nil {
		return err
	}
	for i, hook := range c.hooks {
		if err := c.runHook(ctx, hook); err != nil {
			return fmt.Errorf("error running createRuntime hook #%d %q: %w", i, hook.GetPath(), downCause(ctx, err))
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	defer s.relay.nri.keepFromSync()()
	p, err := startTask(c)
	if err != nil {
		return fmt.Errorf("failed to start task: %w", err)
	}
	c.mu.Lock()
	c.status.State, c.status.Pid, c.status.StartedAt = Running, p.pid(), time.Now()
	c.process = p
	c.mu.Unlock()
	c.pod.runtime.tasks.Go(func() { c.follow(p) })
	s.relay.postStartContainer(ctx, c)
	return nil
}

// startTask starts what a container runs.
func startTask(c *Container) (task, error) {
	if r := c.pod.runtime; r.opts.InMemory {
		return startRoutine(int(noProcess)+r.number(), c.spec.Run), nil // the kernel has no such pid
	}
	cmd := exec.Command(c.spec.Args[0], c.spec.Args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = c.spec.Stdout, c.spec.Stdout
	cmd.WaitDelay = outputGrace
	return startProcess(cmd)
}

// follow waits for the end of the container's process, and reports it to the plugins.
func (c *Container) follow(p task) {
	code, err := p.waitGroup()
	r := c.pod.runtime
	if err != nil {
		r.log.WithError(err).WithField("id", c.id).Error("The end of a container's process was not clean")
	}
	c.mu.Lock()
	c.exitLocked(code)
	message := c.messageLocked()
	c.mu.Unlock()
	message.State = api.ContainerState_CONTAINER_STOPPED
	if s := r.current(); s != nil {
		s.relay.stopContainer(context.Background(), c.pod, message)
	}
}

// Stop ends the container's process with SIGTERM, and with SIGKILL after grace. If grace is 0, it sends SIGKILL at
// once. It returns when the process is gone. It does not change a container that does not run, even while its hooks
// wait. It may be called again.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	return c.end(ctx, "stop", func(ctx context.Context, s *session) error {
		if err := c.kill(ctx, grace); err != nil {
			return err
		}
		s.relay.stopContainer(ctx, c.pod, c.message())
		return nil
	})
}

// Remove kills the container's process if it runs, and removes the container. It is an error while the container is
// starting. It may be called again.
func (c *Container) Remove(ctx context.Context) error { return c.end(ctx, "remove", c.remove) }

// end makes a request about a container. It has no effect on a removed container.
func (c *Container) end(ctx context.Context, what string, request func(context.Context, *session) error) error {
	return c.wrap(what, c.pod.runtime.request(ctx, c.stored, request))
}

func (c *Container) remove(ctx context.Context, s *session) error {
	if err := c.kill(ctx, 0); err != nil {
		return err
	}
	if err := c.setRemoved(); err != nil {
		return err
	}
	s.relay.removeContainer(ctx, c)
	c.pod.runtime.mu.Lock()
	defer c.pod.runtime.mu.Unlock()
	delete(c.pod.runtime.containers, c.id)
	return nil
}

func (c *Container) setRemoved() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.starting:
		return errors.New("container is in starting state, can't be removed")
	case c.process != nil:
		return errors.New("container is still running")
	}
	c.removed = true
	return nil
}

// kill ends the process of a running container and waits for the end.
func (c *Container) kill(ctx context.Context, grace time.Duration) error {
	c.mu.Lock()
	p := c.process
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	if grace > 0 {
		if err := p.signal(p.pid(), syscall.SIGTERM); err != nil {
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
	if err := p.kill(); err != nil {
		return err
	}
	_, err := c.Wait(ctx)
	return err
}

// destroy kills the process when the runtime is stopped.
func (c *Container) destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return nil
	}
	return c.process.kill()
}
