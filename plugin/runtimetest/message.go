package runtimetest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/containerd/nri/pkg/api"
)

// Labels and annotations that containerd gives to what it runs.
const (
	labelKind           = "io.cri-containerd.kind"
	criContainerType    = "io.kubernetes.cri.container-type"
	criContainerName    = "io.kubernetes.cri.container-name"
	criSandboxID        = "io.kubernetes.cri.sandbox-id"
	criSandboxName      = "io.kubernetes.cri.sandbox-name"
	criSandboxUID       = "io.kubernetes.cri.sandbox-uid"
	criSandboxNamespace = "io.kubernetes.cri.sandbox-namespace"
)

// noProcess is told as the first process of a sandbox: more than the kernel ever gives.
const noProcess uint32 = 1 << 22

// merged returns a new map, never nil, of all entries; later maps win.
func merged(all ...map[string]string) map[string]string {
	m := make(map[string]string)
	for _, from := range all {
		maps.Copy(m, from)
	}
	return m
}

// criAnnotations are the runtime's own annotations of the sandbox and its containers.
func (p *Pod) criAnnotations(kind string) map[string]string {
	return map[string]string{
		criContainerType:    kind,
		criSandboxID:        p.id,
		criSandboxName:      p.spec.Name,
		criSandboxUID:       p.spec.UID,
		criSandboxNamespace: p.spec.Namespace,
	}
}

// message is the sandbox as plugins see it; a new copy at each call.
func (p *Pod) message() *api.PodSandbox {
	pid := cmp.Or(p.spec.Pid, noProcess)
	if !p.Ready() && p.stored() {
		pid = 0 // it was stopped
	}
	return &api.PodSandbox{
		Id:             p.id,
		Name:           p.spec.Name,
		Uid:            p.spec.UID,
		Namespace:      p.spec.Namespace,
		Labels:         merged(p.spec.Labels, map[string]string{labelKind: "sandbox"}),
		Annotations:    merged(p.spec.Annotations, p.criAnnotations("sandbox")),
		RuntimeHandler: p.spec.RuntimeHandler,
		Pid:            pid,
		Linux: &api.LinuxPodSandbox{
			CgroupParent: p.spec.CgroupParent,
			CgroupsPath:  cgroupsPath(p.spec.CgroupParent, p.id),
		},
	}
}

// message is the container as plugins see it; a new copy at each call.
func (c *Container) message() *api.Container {
	stored := c.stored()
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.messageLocked()
	if !stored { // while it is being created containerd has no status for it
		m.State = api.ContainerState_CONTAINER_UNKNOWN
		m.CreatedAt = 0
	}
	return m
}

func (c *Container) messageLocked() *api.Container {
	m := &api.Container{
		Id:           c.id,
		PodSandboxId: c.pod.id,
		Name:         c.spec.Name,
		Labels:       merged(map[string]string{labelKind: "container"}, c.spec.Labels),
		Annotations:  merged(c.process.annotations, c.spec.Annotations),
		Args:         slices.Clone(c.process.args),
		Env:          slices.Clone(c.process.env),
		Hooks:        &api.Hooks{CreateRuntime: slices.Clone(c.process.hooks)},
		Linux:        &api.LinuxContainer{CgroupsPath: cgroupsPath(c.pod.spec.CgroupParent, c.id)},
		CreatedAt:    c.status.CreatedAt.UnixNano(),
	}
	switch c.status.State {
	case Created:
		m.State = api.ContainerState_CONTAINER_CREATED
	case Running:
		m.State = api.ContainerState_CONTAINER_RUNNING
	case Exited: // containerd leaves it UNKNOWN
		m.FinishedAt = c.status.FinishedAt.UnixNano()
		m.ExitCode = int32(c.status.ExitCode)
	}
	if !c.status.StartedAt.IsZero() {
		m.StartedAt = c.status.StartedAt.UnixNano()
	}
	m.Pid = uint32(c.status.Pid)
	return m
}

// undoMessage is the container in the events that undo a refused create: containerd
// has by then no more than its specification.
func (c *Container) undoMessage() *api.Container {
	m := c.message()
	m.Labels = map[string]string{}
	m.Annotations = maps.Clone(c.process.annotations)
	return m
}

// list is what a plugin is synchronised with: all sandboxes, and the containers
// that have not exited, oldest first.
func (r *Runtime) list() ([]*api.PodSandbox, []*api.Container) {
	r.mu.Lock()
	pods := slices.Collect(maps.Values(r.pods))
	containers := slices.Collect(maps.Values(r.containers))
	r.mu.Unlock()
	slices.SortFunc(pods, func(a, b *Pod) int { return a.created.Compare(b.created) })
	podMessages := make([]*api.PodSandbox, 0, len(pods))
	for _, p := range pods {
		podMessages = append(podMessages, p.message())
	}
	messages := make([]*api.Container, 0, len(containers))
	for _, c := range containers {
		if m := c.message(); m.State != api.ContainerState_CONTAINER_UNKNOWN {
			messages = append(messages, m)
		}
	}
	slices.SortFunc(messages, func(a, b *api.Container) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return podMessages, messages
}

// messageWithPid is the container as the StartContainer event has it: Created, but with
// the process that waits to be released.
func (c *Container) messageWithPid(t *task) *api.Container {
	m := c.message()
	m.Pid = uint32(t.process.pid())
	return m
}
