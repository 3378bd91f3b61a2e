package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// PodSpec is what a sandbox is made from. The runtime adds the labels and annotations
// that containerd adds, not those of kubelet; [Runtime.Keep] adds these.
type PodSpec struct {
	Namespace, Name string
	// UID is random if empty.
	UID                 string
	Labels, Annotations map[string]string
	// CgroupParent is told to plugins; no cgroup is made. It is a path, or the path of a
	// systemd slice.
	CgroupParent string
	// RuntimeHandler and Pid are told to plugins: what the pod's RuntimeClass asks for,
	// and the sandbox's first process until it is stopped. Neither is used; empty is the
	// default handler, and for 0 a process is told that does not exist.
	RuntimeHandler string
	Pid            uint32
}

// Pod is a sandbox. It is made by RunPod and safe for concurrent use.
type Pod struct {
	runtime *Runtime
	id      string
	spec    PodSpec
	created time.Time

	mu sync.Mutex
	// guarded by mu
	ready bool
}

// RunPod runs a sandbox. The error of a plugin that refuses it is wrapped; its Stop-
// and RemovePodSandbox events have been sent then. It blocks while the plugins do.
func (r *Runtime) RunPod(ctx context.Context, spec PodSpec) (*Pod, error) {
	s, ctx, end, err := r.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("run pod %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	defer end()
	if spec.UID == "" {
		spec.UID = NewUID()
	}
	spec.Labels, spec.Annotations = maps.Clone(spec.Labels), maps.Clone(spec.Annotations)
	p := &Pod{runtime: r, id: newID(), spec: spec, created: time.Now()}

	defer s.relay.nri.BlockPluginSync().Unblock()
	if err := s.relay.runPod(ctx, p); err != nil {
		return nil, fmt.Errorf("run pod %s/%s: NRI RunPodSandbox failed: %w", spec.Namespace, spec.Name, downCause(ctx, err))
	}
	p.ready = true
	r.mu.Lock()
	r.pods[p.id] = p
	r.mu.Unlock()
	return p, nil
}

// downCause adds ErrDown to the error of a request that the runtime's end cut short.
func downCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrDown) && !errors.Is(err, ErrDown) {
		return fmt.Errorf("%w: %w", ErrDown, err)
	}
	return err
}

// ID is the sandbox's id, 64 hex digits, another for each sandbox.
func (p *Pod) ID() string { return p.id }

// UID is the pod's UID, the same for all sandboxes that were made for the pod.
func (p *Pod) UID() string { return p.spec.UID }

// Ready tells whether the sandbox can hold running containers: from RunPod to Stop.
func (p *Pod) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// Stop kills the pod's running containers and stops the sandbox. It may be called again.
func (p *Pod) Stop(ctx context.Context) error {
	s, ctx, end, err := p.runtime.begin(ctx)
	if err != nil {
		return fmt.Errorf("stop pod %s/%s: %w", p.spec.Namespace, p.spec.Name, err)
	}
	defer end()
	if !p.stored() {
		return nil
	}
	defer s.relay.nri.BlockPluginSync().Unblock()
	return p.stop(ctx, s)
}

// Remove stops the sandbox and removes its containers and itself. It may be called again.
func (p *Pod) Remove(ctx context.Context) error {
	s, ctx, end, err := p.runtime.begin(ctx)
	if err != nil {
		return fmt.Errorf("remove pod %s/%s: %w", p.spec.Namespace, p.spec.Name, err)
	}
	defer end()
	if !p.stored() {
		return nil
	}
	defer s.relay.nri.BlockPluginSync().Unblock()
	if err := p.stop(ctx, s); err != nil {
		return err
	}
	for _, c := range p.containers() {
		if err := c.remove(ctx, s); err != nil {
			return fmt.Errorf("remove pod %s/%s: %w", p.spec.Namespace, p.spec.Name, err)
		}
	}
	s.relay.removePod(ctx, p)
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	delete(p.runtime.pods, p.id)
	return nil
}

func (p *Pod) stop(ctx context.Context, s *session) error {
	for _, c := range p.containers() {
		if err := c.kill(ctx, 0); err != nil {
			return fmt.Errorf("stop pod %s/%s: %w", p.spec.Namespace, p.spec.Name, err)
		}
	}
	p.mu.Lock()
	p.ready = false
	p.mu.Unlock()
	s.relay.stopPod(ctx, p)
	return nil
}

func (p *Pod) stored() bool {
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	return p.runtime.pods[p.id] == p
}

func (p *Pod) containers() []*Container {
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	var list []*Container
	for _, c := range p.runtime.containers {
		if c.pod == p {
			list = append(list, c)
		}
	}
	return list
}
