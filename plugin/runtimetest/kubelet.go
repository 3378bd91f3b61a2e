package runtimetest

import (
	"context"
	"fmt"
	"path"
	"time"
)

// Keep starts a pod of one container as kubelet does: what is refused or fails is asked
// for again after the interval retry, but a refused create the first time at once. It
// blocks until the container has started, and returns it, or until ctx ends. A container
// whose start failed stays, dead, beside the next one.
//
// Keep adds the labels and annotations kubelet adds, where they are not in the
// specifications, and the annotation kubernetes.io/config.source=api. What becomes of the
// container, and the end of the pod, are the caller's.
func (r *Runtime) Keep(ctx context.Context, spec PodSpec, retry time.Duration, container ContainerSpec) (*Container, error) {
	asByKubelet(&spec, &container)
	var pod *Pod
	err := insist(ctx, retry, false, func() (err error) {
		pod, err = r.RunPod(ctx, spec)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keep pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	var c *Container
	err = insist(ctx, retry, false, func() error {
		err := insist(ctx, retry, true, func() (err error) {
			c, err = pod.CreateContainer(ctx, container)
			return err
		})
		if err != nil {
			return err
		}
		return c.Start(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("keep pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return c, nil
}

// asByKubelet fills in what kubelet says of a pod and its container.
func asByKubelet(spec *PodSpec, container *ContainerSpec) {
	if spec.UID == "" {
		spec.UID = NewUID()
	}
	identity := map[string]string{
		"io.kubernetes.pod.namespace": spec.Namespace,
		"io.kubernetes.pod.name":      spec.Name,
		"io.kubernetes.pod.uid":       spec.UID,
	}
	spec.Labels = merged(identity, spec.Labels)
	spec.Annotations = merged(map[string]string{
		"kubernetes.io/config.source": "api",
		"kubernetes.io/config.seen":   time.Now().Format(time.RFC3339Nano),
	}, spec.Annotations)
	if spec.CgroupParent == "" {
		spec.CgroupParent = path.Join("/kubepods/burstable", "pod"+spec.UID)
	}
	container.Labels = merged(identity, map[string]string{"io.kubernetes.container.name": container.Name}, container.Labels)
}

// insist repeats a request until it is granted or ctx ends.
func insist(ctx context.Context, retry time.Duration, onceAtOnce bool, request func() error) error {
	for {
		err := request()
		if err == nil {
			return nil
		}
		wait := retry
		if onceAtOnce {
			wait, onceAtOnce = 0, false
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
