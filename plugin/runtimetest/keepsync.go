package runtimetest

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// sync brings the pod one step further. It returns when it wants to be called again at the
// latest, and whether the pod has ended for good.
func (k *keptPod) sync(ctx context.Context) (again time.Duration, done bool) {
	if !k.syncSandbox(ctx) {
		return jitter(k.opts.RetryInterval), false
	}
	again, done = resyncInterval, true
	for _, c := range k.containers {
		if ctx.Err() != nil {
			return 0, false
		}
		wait, ended := k.syncContainer(ctx, c)
		again = min(again, wait)
		done = done && ended
		if k.pod == nil { // the runtime went down while it started
			return 0, false
		}
	}
	return again, done
}

// syncSandbox sees to it that there is a sandbox, and tells whether it could.
func (k *keptPod) syncSandbox(ctx context.Context) bool {
	if k.pod != nil && !k.pod.stored() { // the runtime was stopped and started again
		k.abandon()
	}
	if k.lost != nil {
		if err := k.request(ctx, k.lost.Remove); err != nil {
			k.runtime.log.WithError(err).Warn("Removing a lost sandbox failed")
			return false
		}
		k.lost = nil
	}
	if k.pod != nil {
		return true
	}
	err := k.request(ctx, func(ctx context.Context) (err error) {
		k.pod, err = k.runtime.RunPod(ctx, k.spec)
		return err
	})
	if err != nil {
		if !errors.Is(err, ErrDown) {
			k.observe(SandboxRefused, nil, err)
		}
		return false
	}
	k.observe(SandboxRun, nil, nil)
	return true
}

func (k *keptPod) syncContainer(ctx context.Context, c *keptContainer) (again time.Duration, ended bool) {
	if c.current != nil {
		status := c.current.Status()
		if status.State != Exited {
			return resyncInterval, false
		}
		if !c.seen {
			c.seen = true
			k.observe(ContainerExited, c, nil)
		}
		if !k.restarts(status) {
			return resyncInterval, true
		}
		if wait := time.Until(status.FinishedAt.Add(c.backOff)); c.backOff > 0 && wait > 0 {
			return wait, false
		}
	}
	return k.startContainer(ctx, c), false
}

func (k *keptPod) restarts(s Status) bool {
	switch k.opts.RestartPolicy {
	case RestartNever:
		return false
	case RestartOnFailure:
		return s.ExitCode != 0
	default:
		return true
	}
}

// startContainer makes and starts the next container of c, and returns when to look again.
func (k *keptPod) startContainer(ctx context.Context, c *keptContainer) (again time.Duration) {
	spec := c.spec
	spec.Annotations = merged(map[string]string{"io.kubernetes.container.restartCount": strconv.Itoa(c.attempt)}, spec.Annotations)
	var next *Container
	err := k.request(ctx, func(ctx context.Context) (err error) {
		next, err = k.pod.CreateContainer(ctx, spec)
		return err
	})
	if errors.Is(err, ErrDown) { // kubelet does nothing to pods while the runtime is away
		return jitter(k.opts.RetryInterval)
	}
	if c.current != nil {
		c.backOff = min(max(2*c.backOff, k.opts.BackOff), k.opts.MaxBackOff)
	}
	if err != nil {
		k.observe(CreateRefused, c, err)
		first := !c.refused
		c.refused = true
		if first {
			return 0
		}
		return jitter(k.opts.RetryInterval)
	}
	k.replace(ctx, c, next)
	k.observe(ContainerStarts, c, nil)
	if err := k.request(ctx, next.Start); err != nil {
		c.seen = true
		k.observe(StartFailed, c, err)
		if errors.Is(err, ErrDown) { // kubelet then makes sandbox and container anew
			k.abandon()
		}
		return 0
	}
	k.observe(ContainerStarted, c, nil)
	k.watchers.Go(func() { k.watch(next) })
	return resyncInterval
}

// watch wakes Keep when c has exited.
func (k *keptPod) watch(c *Container) {
	select {
	case <-k.quit:
		return
	case <-c.Exited():
	}
	select {
	case k.wake <- struct{}{}:
	default: // it will look at all containers anyway
	}
}

// replace makes next the current container and removes the last but one.
func (k *keptPod) replace(ctx context.Context, c *keptContainer, next *Container) {
	if c.previous != nil {
		if err := k.request(ctx, c.previous.Remove); err != nil {
			k.runtime.log.WithError(err).Warn("Removing a dead container failed")
		}
	}
	c.previous, c.current = c.current, next
	c.seen, c.refused = false, false
	c.attempt++
}

// abandon gives the sandbox up; another is made once this one could be removed.
func (k *keptPod) abandon() {
	k.lost, k.pod = k.pod, nil
	for _, c := range k.containers {
		c.current, c.previous, c.refused, c.backOff = nil, nil, false, 0
	}
}
