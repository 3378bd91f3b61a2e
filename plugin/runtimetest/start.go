package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	startErrorCode   = 128
	startErrorReason = "StartError"
)

// Start runs the hooks, then the container's process. It blocks while hooks run and
// plugins wait. After an error the container is Exited, with reason StartError. A container
// can be started once.
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
	if err != nil {
		return fmt.Errorf("start container %s of pod %s/%s: %w", c.spec.Name, c.pod.spec.Namespace, c.pod.spec.Name, err)
	}
	return nil
}

func (c *Container) setStarting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.status.State != Created:
		return fmt.Errorf("container is in %s state", c.status.State)
	case c.removing:
		return errors.New("container is in removing state, can't be started")
	case c.starting:
		return errors.New("container is already in starting state")
	}
	c.starting = true
	return nil
}

// started ends the starting state; a failed start ends the container.
func (c *Container) started(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starting = false
	if err == nil {
		return
	}
	c.status.State = Exited
	c.status.Pid = 0
	c.status.FinishedAt = time.Now()
	c.status.ExitCode = startErrorCode
	c.status.Reason = startErrorReason
	c.status.Message = err.Error()
	close(c.exited)
}

func (c *Container) start(ctx context.Context, s *session) (err error) {
	if !c.pod.Ready() {
		return fmt.Errorf("sandbox %q is not running", c.pod.id)
	}
	t, err := c.createTask(ctx)
	if err != nil {
		return fmt.Errorf("failed to create task: %w", downCause(ctx, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.delete())
		}
	}()
	defer s.relay.nri.BlockPluginSync().Unblock()
	defer func() {
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
			defer cancel()
			s.relay.stopContainer(undo, c.pod, c.message())
		}
	}()

	if err := s.relay.startContainer(ctx, c.pod, c.messageWithPid(t)); err != nil {
		return fmt.Errorf("NRI container start failed: %w", downCause(ctx, err))
	}
	if err := t.release(); err != nil {
		return fmt.Errorf("failed to start task: %w", err)
	}
	c.mu.Lock()
	c.status.State = Running
	c.status.Pid = t.process.pid()
	c.status.StartedAt = time.Now()
	c.task = t
	c.mu.Unlock()
	c.pod.runtime.tasks.Go(func() { c.monitor(t) })
	s.relay.postStartContainer(ctx, c.pod, c.message())
	return nil
}

// monitor waits for the container's process to end and tells the plugins.
func (c *Container) monitor(t *task) {
	<-t.process.ended
	code, err := t.process.reap()
	if err != nil {
		c.pod.runtime.log.WithError(err).WithField("id", c.id).Error("The end of a container's process was not clean")
	}
	c.mu.Lock()
	c.task = nil
	c.status.State = Exited
	c.status.Pid = 0
	c.status.FinishedAt = time.Now()
	c.status.ExitCode = code
	message := c.messageLocked()
	c.mu.Unlock()
	if s := c.pod.runtime.current(); s != nil {
		s.relay.notifyExit(c.pod, message)
	}
	close(c.exited)
}
