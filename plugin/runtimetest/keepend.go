package runtimetest

import (
	"context"
	"errors"
	"fmt"
)

// finish removes a pod that has ended for good.
func (k *keptPod) finish(ctx context.Context) error {
	var failed error
	for _, c := range k.containers {
		if s := c.current.Status(); s.ExitCode != 0 && failed == nil {
			failed = fmt.Errorf("keep pod %s/%s: %w: container %s: exit code %d %s %s",
				k.spec.Namespace, k.spec.Name, ErrPodFailed, c.spec.Name, s.ExitCode, s.Reason, s.Message)
		}
	}
	return errors.Join(failed, k.terminate(ctx))
}

// terminate stops and removes the pod. A runtime that is down has none left to remove.
func (k *keptPod) terminate(ctx context.Context) error {
	var err error
	if k.lost != nil {
		err = k.request(ctx, k.lost.Remove)
	}
	if k.pod != nil {
		err = errors.Join(err, k.remove(ctx))
	}
	if errors.Is(err, ErrDown) {
		return nil
	}
	k.observe(PodRemoved, nil, err)
	return err
}

func (k *keptPod) remove(ctx context.Context) error {
	for _, c := range k.containers {
		if c.current == nil {
			continue
		}
		stop := func(ctx context.Context) error { return c.current.Stop(ctx, k.opts.StopGrace) }
		if c.current.Status().State != Running {
			continue // kubelet stops only what runs
		}
		if err := k.request(ctx, stop); err != nil {
			return err
		}
		c.seen = true
		k.observe(ContainerExited, c, nil)
	}
	if err := k.request(ctx, k.pod.Stop); err != nil {
		return err
	}
	for _, c := range k.pod.containers() {
		if err := k.request(ctx, c.Remove); err != nil {
			return err
		}
	}
	return k.request(ctx, k.pod.Remove)
}
