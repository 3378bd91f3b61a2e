package waiting

import (
	"fmt"
	"maps"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// pod is a pod whose steps a test takes one by one.
type pod struct {
	n       *node
	uid     string // also its name
	sandbox *api.PodSandbox
	made    int               // sandboxes and containers
	running map[string]string // the IDs of the latest containers, by name
}

// container is a container that the runtime made. It starts after its hook, or at once if hook is nil.
type container struct {
	*api.Container
	pod  *pod
	hook *api.Hook
}

// stranger returns a pod that the API server has not reported.
func (n *node) stranger(name string) *pod {
	return &pod{n: n, uid: name, running: map[string]string{}, sandbox: &api.PodSandbox{Uid: name, Namespace: "default", Name: name}}
}

// pod returns a pod that is always restarted and probed, with the container "app". The changes are made before the API
// server reports it.
func (n *node) pod(name string, changes ...func(*podwatch.Pod)) *pod {
	p := n.stranger(name)
	p.changes(func(pod *podwatch.Pod) {
		*pod = podwatch.Pod{UID: name, Namespace: "default", Name: name, RestartPolicy: "Always", Probed: true, Phase: corev1.PodPending}
		has(podwatch.App, "app")(pod)
		for _, change := range changes {
			change(pod)
		}
	})
	return p
}

// inAnother returns a pod in a namespace of its own, with the name of the pod.
func (n *node) inAnother(name string) *pod {
	p := n.pod(name, func(pod *podwatch.Pod) { pod.Namespace = name })
	p.sandbox.Namespace = name
	return p
}

// has gives a pod more containers.
func has(kind podwatch.Kind, names ...string) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) {
		all := map[string]podwatch.Container{}
		maps.Copy(all, pod.Containers)
		for _, name := range names {
			all[name] = podwatch.Container{Kind: kind}
		}
		pod.Containers = all
	}
}

// restarted sets a pod's restart policy.
func restarted(policy string) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.RestartPolicy = policy }
}

// changes makes the API server report the pod.
func (p *pod) changes(change func(*podwatch.Pod)) {
	p.n.o.Starts.PodChanged(time.Now(), p.n.watch.tell(p.uid, change), false)
}

// isDeleted reports that the deletion of the pod was requested.
func (p *pod) isDeleted() { p.changes(func(pod *podwatch.Pod) { pod.Deleting = true }) }

// getsReady reports that the containers that run are ready.
func (p *pod) getsReady() {
	p.changes(func(pod *podwatch.Pod) {
		reported := map[string]podwatch.Container{}
		for name, c := range pod.Containers {
			c.ID, c.Running = p.running[name], p.running[name] != ""
			reported[name] = c
		}
		pod.Containers, pod.Phase, pod.AllRunning, pod.ContainersReady = reported, corev1.PodRunning, true, true
	})
}

// run makes the runtime make a sandbox. A sandbox that is refused is removed before run returns.
func (p *pod) run() error {
	p.made++
	p.sandbox.Id = fmt.Sprintf("%s-sandbox-%d", p.uid, p.made)
	err := p.n.Sandbox(p.n.t.Context(), p.sandbox)
	if err != nil {
		p.n.o.Starts.SandboxStopped(p.sandbox)
		p.n.o.Starts.SandboxRemoved(p.sandbox)
	}
	return err
}

// runs is run of a sandbox that must not be refused.
func (p *pod) runs() *pod {
	p.n.t.Helper()
	require.NoError(p.n.t, p.run())
	return p
}

// create makes the runtime make a container. A container that is refused is removed before create returns.
func (p *pod) create(name string) (container, error) {
	p.made++
	id := fmt.Sprintf("%s-%s-%d", p.uid, name, p.made)
	c := container{pod: p, Container: &api.Container{
		Id: id, PodSandboxId: p.sandbox.GetId(), Name: name, Linux: &api.LinuxContainer{CgroupsPath: "/kubepods/" + id},
	}}
	var err error
	if c.hook, err = p.n.Container(p.n.t.Context(), p.sandbox, c.Container); err != nil {
		c.isRemoved()
	}
	return c, err
}

// starts starts a container that must not wait.
func (p *pod) starts(name string) container {
	p.n.t.Helper()
	c, err := p.create(name)
	require.NoError(p.n.t, err)
	require.Nil(p.n.t, c.hook)
	c.runs()
	return c
}

// runs reports that the process of the container runs.
func (c container) runs() {
	c.pod.running[c.GetName()] = c.GetId()
	c.pod.n.ContainerStarted("default/"+c.pod.uid, c.GetId())
	c.pod.n.o.Starts.ContainerStarted(c.pod.sandbox, c.Container)
}

// isRemoved reports that the container was removed.
func (c container) isRemoved() {
	c.pod.n.ContainerGone("default/"+c.pod.uid, c.GetId())
	c.pod.n.o.Starts.ContainerRemoved(c.pod.sandbox, c.Container)
}

// exits reports that the process of the container ended.
func (c container) exits() { c.pod.n.o.Starts.ContainerStopped(c.pod.sandbox, c.Container) }

// occupy starts a pod that holds a slot until it gets ready.
func (n *node) occupy(name string) *pod {
	n.t.Helper()
	p := n.pod(name).runs()
	p.starts("app")
	n.passes(0)
	require.Equal(n.t, throttle.Starting, p.view().State)
	return p
}

// view returns the limiter's view of the pod.
func (p *pod) view() throttle.TicketView {
	v, _ := p.n.o.Starts.View(time.Now(), p.uid)
	return v
}
