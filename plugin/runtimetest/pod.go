package runtimetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// noProcess stands for the first process of a sandbox. It is larger than any pid of the kernel.
const noProcess uint32 = 1 << 22

// PodSpec describes a sandbox.
type PodSpec struct {
	Namespace, Name string
	// UID is random if empty.
	UID                 string
	Labels, Annotations map[string]string
	// Plugins see CgroupParent and RuntimeHandler; neither has another use. Empty is no cgroup, and the default
	// handler.
	CgroupParent, RuntimeHandler string
}

// Pod is a sandbox. RunPod makes it. It is safe for concurrent use.
type Pod struct {
	runtime *Runtime
	id      string
	spec    PodSpec
	created time.Time

	mu      sync.Mutex
	stopped bool // guarded by mu
}

// NewUID returns a random pod UID in the form of the API server.
func NewUID() string { return string(uuid.NewUUID()) }

// RunPod runs a sandbox. It wraps the error of a plugin that refuses the sandbox, whose Stop- and RemovePodSandbox
// events have been sent by then. It blocks while the plugins do.
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
	p := &Pod{runtime: r, id: r.newID(spec.UID), spec: spec, created: time.Now()}

	if r.opts.Network != nil {
		if err := r.opts.Network(ctx, spec, p.id); err != nil {
			return nil, fmt.Errorf("run pod %s/%s: failed to setup network for sandbox: %w", spec.Namespace, spec.Name, downCause(ctx, err))
		}
	}
	defer s.relay.nri.keepFromSync()()
	err = p.makeBundle(p.id, "sandbox", 0)
	if err == nil {
		err = s.relay.runPod(ctx, p)
	}
	if err != nil {
		r.removeBundle(p.id)
		return nil, fmt.Errorf("run pod %s/%s: NRI RunPodSandbox failed: %w", spec.Namespace, spec.Name, downCause(ctx, err))
	}
	r.mu.Lock()
	r.pods[p.id] = p
	r.mu.Unlock()
	return p, nil
}

// ID is the sandbox's id, 64 hex digits. Each sandbox has its own.
func (p *Pod) ID() string { return p.id }

// Stop kills the pod's running containers and stops the sandbox. It may be called again.
func (p *Pod) Stop(ctx context.Context) error {
	return p.end(ctx, "stop", p.stop)
}

// Remove stops the sandbox and removes its containers and itself. It may be called again.
func (p *Pod) Remove(ctx context.Context) error {
	return p.end(ctx, "remove", func(ctx context.Context, s *session) error {
		if err := p.stop(ctx, s); err != nil {
			return err
		}
		for _, c := range p.containers() {
			if err := c.remove(ctx, s); err != nil {
				return err
			}
		}
		s.relay.removePod(ctx, p)
		p.runtime.mu.Lock()
		defer p.runtime.mu.Unlock()
		delete(p.runtime.pods, p.id)
		return nil
	})
}

// end makes a request about a sandbox. It has no effect on a removed sandbox.
func (p *Pod) end(ctx context.Context, what string, request func(context.Context, *session) error) error {
	if err := p.runtime.request(ctx, p.stored, request); err != nil {
		return fmt.Errorf("%s pod %s/%s: %w", what, p.spec.Namespace, p.spec.Name, err)
	}
	return nil
}

func (p *Pod) stop(ctx context.Context, s *session) error {
	for _, c := range p.containers() {
		if err := c.kill(ctx, 0); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.runtime.removeBundle(p.id)
	s.relay.stopPod(ctx, p)
	return nil
}

func (p *Pod) stored() bool {
	p.runtime.mu.Lock()
	defer p.runtime.mu.Unlock()
	return p.runtime.pods[p.id] == p
}

// ready reports whether the sandbox can hold running containers: from RunPod to Stop.
func (p *Pod) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopped && p.stored()
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

// message is the sandbox as plugins see it. Each call returns a new copy.
func (p *Pod) message() *api.PodSandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid := noProcess
	if p.stopped {
		pid = 0
	}
	return &api.PodSandbox{
		Id: p.id, Name: p.spec.Name, Uid: p.spec.UID, Namespace: p.spec.Namespace,
		Labels: maps.Clone(p.spec.Labels), Annotations: maps.Clone(p.spec.Annotations),
		RuntimeHandler: p.spec.RuntimeHandler, Pid: pid,
		Linux: &api.LinuxPodSandbox{CgroupParent: p.spec.CgroupParent, CgroupsPath: p.cgroup(p.id)},
	}
}
