package plugin

import (
	"context"
	"maps"
	"sync"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// testPod is a pod whose steps a test takes one by one, like kubelet.
type testPod struct {
	n       *node
	uid     string
	spec    runtimetest.PodSpec
	sandbox *runtimetest.Pod

	mu      sync.Mutex
	running map[string]string        // the IDs of the latest containers, by name
	started []*runtimetest.Container // all started containers
}

// pod returns a pod that the API server knows: always restarted, probed, with the container "app". The changes are made
// before the API server reports it.
func (n *node) pod(name string, changes ...func(*podwatch.Pod)) *testPod {
	p := n.strangePod(name)
	p.becomesKnown(changes...)
	return p
}

// strangePod returns a pod that the API server has not reported yet.
func (n *node) strangePod(name string) *testPod {
	uid := runtimetest.NewUID()
	return &testPod{
		n: n, uid: uid, running: map[string]string{},
		spec: runtimetest.PodSpec{Namespace: "default", Name: name, UID: uid},
	}
}

// becomesKnown reports the pod to the daemon.
func (p *testPod) becomesKnown(changes ...func(*podwatch.Pod)) {
	p.n.pods.tell(p.uid, func(pod *podwatch.Pod) {
		*pod = podwatch.Pod{
			UID: p.uid, Namespace: p.spec.Namespace, Name: p.spec.Name, RestartPolicy: "Always",
			Probed: true, Phase: corev1.PodPending, Containers: containersNamed(podwatch.App, "app"),
		}
		for _, change := range changes {
			change(pod)
		}
	})
}

// containersNamed returns containers of one kind.
func containersNamed(kind podwatch.Kind, names ...string) map[string]podwatch.Container {
	all := map[string]podwatch.Container{}
	for _, name := range names {
		all[name] = podwatch.Container{Kind: kind}
	}
	return all
}

// run runs a sandbox.
func (p *testPod) run() error {
	sandbox, err := p.n.rt.RunPod(p.n.ctx, p.spec)
	if err == nil {
		p.sandbox = sandbox
	}
	return err
}

// runs runs a sandbox, which must not be refused.
func (p *testPod) runs() *testPod {
	p.n.t.Helper()
	require.NoError(p.n.t, p.run())
	return p
}

// create creates a container that sleeps, or runs args.
func (p *testPod) create(name string, args ...string) (*runtimetest.Container, error) {
	if len(args) == 0 {
		args = []string{"sleep", "600"}
	}
	return p.sandbox.CreateContainer(p.n.ctx, runtimetest.ContainerSpec{Name: name, Args: args})
}

// creates creates a container, which must not be refused.
func (p *testPod) creates(name string, args ...string) *runtimetest.Container {
	p.n.t.Helper()
	ctr, err := p.create(name, args...)
	require.NoError(p.n.t, err)
	return ctr
}

// attempt is the start of a container that runs in the background.
type attempt struct {
	ctr  *runtimetest.Container
	pod  *testPod
	done chan struct{}
	err  error // of the start, once done is closed
}

// starts creates a container and begins to start it.
func (p *testPod) starts(name string, args ...string) *attempt {
	p.n.t.Helper()
	return p.launches(name, p.creates(name, args...))
}

// launches begins to start a container that exists.
func (p *testPod) launches(name string, ctr *runtimetest.Container) *attempt {
	a := &attempt{ctr: ctr, pod: p, done: make(chan struct{})}
	p.n.kept.Go(func() {
		defer close(a.done)
		if a.err = a.ctr.Start(p.n.ctx); a.err == nil {
			p.mu.Lock()
			p.running[name] = a.ctr.ID()
			p.started = append(p.started, a.ctr)
			p.mu.Unlock()
		}
	})
	return a
}

// startsNow creates and starts a container that must not wait.
func (p *testPod) startsNow(name string, args ...string) *runtimetest.Container {
	p.n.t.Helper()
	a := p.starts(name, args...)
	a.succeeds()
	return a.ctr
}

// succeeds waits until the container runs.
func (a *attempt) succeeds() {
	a.pod.n.t.Helper()
	require.NoError(a.pod.n.t, a.result())
}

// result waits until the start has ended, and returns its error.
func (a *attempt) result() error {
	a.pod.n.t.Helper()
	ctx, cancel := context.WithTimeout(a.pod.n.ctx, testTimeout)
	defer cancel()
	select {
	case <-a.done:
	case <-ctx.Done():
		require.FailNow(a.pod.n.t, "the start of "+a.pod.spec.Name+" is not over")
	}
	return a.err
}

// over reports whether the start has ended.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// waitsAtGate creates a container, begins to start it, and waits until its hook is at the gate.
func (p *testPod) waitsAtGate(name string) *attempt {
	p.n.t.Helper()
	a := p.starts(name)
	p.isAtGate()
	return a
}

// isAtGate waits until a hook of the pod is at the gate.
func (p *testPod) isAtGate() {
	p.n.t.Helper()
	p.n.eventually(p.spec.Name+" is at the gate", func() bool {
		v := p.n.view(p.uid)
		return v.State == throttle.Waiting && v.Present
	})
}

// becomes waits until the pod's start is in a state for a reason.
func (p *testPod) becomes(state throttle.State, reason reasons.Reason) {
	p.n.t.Helper()
	p.n.eventually(p.spec.Name+" is "+string(state)+" for "+string(reason), func() bool {
		v := p.n.view(p.uid)
		return v.State == state && v.Reason == reason
	})
}

// is returns the current state of the pod's start.
func (p *testPod) is() throttle.State { return p.n.view(p.uid).State }

// reports reports the running containers and the changes, as kubelet would.
func (p *testPod) reports(changes ...func(*podwatch.Pod)) {
	p.mu.Lock()
	running := maps.Clone(p.running)
	p.mu.Unlock()
	p.n.pods.tell(p.uid, func(pod *podwatch.Pod) {
		containers := map[string]podwatch.Container{}
		for name, c := range pod.Containers {
			if id := running[name]; id != "" {
				c.ID, c.Running = id, true
			}
			containers[name] = c
		}
		pod.Containers, pod.Phase, pod.AllRunning = containers, corev1.PodRunning, true
		for _, change := range changes {
			change(pod)
		}
	})
}

// getsReady reports that the pod's containers are ready.
func (p *testPod) getsReady() {
	p.reports(func(pod *podwatch.Pod) { pod.ContainersReady = true })
}

// occupy starts a pod that holds a slot until a test makes it ready.
func (n *node) occupy(name string) *testPod {
	n.t.Helper()
	p := n.pod(name).runs()
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
	return p
}

// restarted sets a pod's restart policy.
func restarted(policy string) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.RestartPolicy = policy }
}
