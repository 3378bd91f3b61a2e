package runtimetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"time"
)

// Keep starts a pod of one container as kubelet does. After a refusal or failure it asks again after the interval
// retry, but after the first refused create it asks again at once. It blocks until the container has started, and
// returns it, or until ctx ends. A container whose start failed stays, dead, beside the next one.
//
// Keep adds the facts that kubelet sets, where the specification leaves them out: the cgroup, and the annotation
// kubernetes.io/config.source=api. The caller ends the container and the pod.
func (r *Runtime) Keep(ctx context.Context, spec PodSpec, retry time.Duration, container ContainerSpec) (*Container, error) {
	spec.UID = cmp.Or(spec.UID, NewUID())
	spec.CgroupParent = cmp.Or(spec.CgroupParent, path.Join("/kubepods/burstable", "pod"+spec.UID))
	annotations := map[string]string{"kubernetes.io/config.source": "api"}
	maps.Copy(annotations, spec.Annotations)
	spec.Annotations = annotations
	pod, err := insist(ctx, retry, false, func() (*Pod, error) { return r.RunPod(ctx, spec) })
	if err != nil {
		return nil, fmt.Errorf("keep pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	c, err := insist(ctx, retry, false, func() (*Container, error) {
		c, err := insist(ctx, retry, true, func() (*Container, error) { return pod.CreateContainer(ctx, container) })
		if err != nil {
			return nil, err
		}
		err = c.Start(ctx)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("keep pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return c, nil
}

// insist repeats a request until it is granted or ctx ends.
func insist[T any](ctx context.Context, retry time.Duration, onceAtOnce bool, request func() (T, error)) (T, error) {
	for {
		granted, err := request()
		if err == nil {
			return granted, nil
		}
		wait := retry
		if onceAtOnce {
			wait, onceAtOnce = 0, false
		}
		if !pause(ctx, wait) {
			return granted, context.Cause(ctx)
		}
	}
}
