package runtimetest

import (
	"context"
	"path"
	"sync"
	"time"
)

// resyncInterval is how often kubelet looks at a pod to which nothing happens.
const resyncInterval = time.Minute

// keptPod is one pod in Keep. Only Keep's goroutine uses it.
type keptPod struct {
	runtime    *Runtime
	spec       PodSpec
	opts       KubeletOptions
	containers []*keptContainer
	wake       chan struct{} // holds one token after a container has exited
	quit       chan struct{} // closed when Keep returns
	watchers   sync.WaitGroup
	pod        *Pod // nil before there is a sandbox
	lost       *Pod // the sandbox before, which is yet to be removed
}

// keptContainer is one container of a pod over its restarts.
type keptContainer struct {
	spec     ContainerSpec
	current  *Container // nil before the first
	seen     bool       // current's exit has been observed
	previous *Container // the one before current; kubelet keeps one dead container
	attempt  int
	refused  bool          // the last create was refused
	backOff  time.Duration // the wait before the next restart, counted from the exit
}

func newKeptPod(r *Runtime, spec PodSpec, o KubeletOptions, containers []ContainerSpec) *keptPod {
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
	k := &keptPod{runtime: r, spec: spec, opts: o, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	for _, c := range containers {
		c.Labels = merged(identity, map[string]string{"io.kubernetes.container.name": c.Name}, c.Labels)
		k.containers = append(k.containers, &keptContainer{spec: c})
	}
	return k
}

// request calls the runtime. The call outlives ctx, up to the request timeout.
func (k *keptPod) request(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.opts.RequestTimeout)
	defer cancel()
	return call(ctx)
}

func (k *keptPod) observe(what Happening, c *keptContainer, err error) {
	e := KubeletEvent{Time: time.Now(), Namespace: k.spec.Namespace, Name: k.spec.Name, UID: k.spec.UID, What: what, Err: err}
	if c != nil {
		e.Container = c.spec.Name
		if c.current != nil {
			e.ContainerID = c.current.ID()
			e.ExitCode = c.current.Status().ExitCode
		}
	}
	k.opts.Observe(e)
}
