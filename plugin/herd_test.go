package plugin

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// keep runs a pod as kubelet would, with quick retries, known to the API server
// as pod says, until end is called.
func (n *node) keep(name string, pod podwatch.Pod, observe func(runtimetest.KubeletEvent), args ...string) (uid string, end context.CancelFunc) {
	uid = runtimetest.NewUID()
	pod.UID, pod.Namespace, pod.Name = uid, "default", name
	if pod.RestartPolicy == "" {
		pod.RestartPolicy = "Always"
	}
	pod.Containers, pod.Phase = containersNamed(podwatch.App, "app"), corev1.PodPending
	n.pods.tell(uid, func(p *podwatch.Pod) { *p = pod })
	ctx, end := context.WithCancel(n.ctx)
	n.kept.Go(func() {
		err := n.rt.Keep(ctx, runtimetest.PodSpec{Namespace: "default", Name: name, UID: uid}, runtimetest.KubeletOptions{
			RetryInterval: 200 * time.Millisecond, BackOff: 100 * time.Millisecond, StopGrace: -1,
			RestartPolicy: runtimetest.RestartPolicy(pod.RestartPolicy), Observe: observe,
		}, runtimetest.ContainerSpec{Name: "app", Args: args})
		if err != nil && ctx.Err() == nil {
			n.t.Errorf("pod %s: %v", name, err)
		}
	})
	return uid, end
}

// ready tells that the containers of a pod are ready.
func (n *node) ready(uid, containerID string) {
	n.pods.tell(uid, func(p *podwatch.Pod) {
		p.Phase, p.ContainersReady, p.AllRunning = corev1.PodRunning, true, true
		p.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, ID: containerID}}
	})
}

// herd follows which pods' processes run and are not ready, by what the runtime
// says.
type herd struct {
	n  *node
	mu sync.Mutex
	// starting are the container IDs, by pod UID, of processes that run and are
	// not ready.
	starting map[string]string
	most     int
	started  []string // names, in the order of their starts
}

func (h *herd) observe(e runtimetest.KubeletEvent) {
	if e.What != runtimetest.ContainerStarted {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting[e.UID] = e.ContainerID
	h.most = max(h.most, len(h.starting))
	h.started = append(h.started, e.Name)
}

// readyOne makes one of the starting pods ready; false: there is none.
func (h *herd) readyOne() bool {
	h.mu.Lock()
	for uid, id := range h.starting {
		delete(h.starting, uid)
		h.mu.Unlock()
		h.n.ready(uid, id)
		return true
	}
	h.mu.Unlock()
	return false
}

func (h *herd) count() (starting, started int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starting), len(h.started)
}

func TestHerdNeverStartsMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	const pods, limit = 12, 2
	n := newNode(t, twoAtATime)
	h := &herd{n: n, starting: map[string]string{}}
	for i := range pods {
		n.keep(fmt.Sprintf("pod-%d", i), podwatch.Pod{Probed: true}, h.observe, "sleep", "600")
	}
	for range pods {
		n.eventually("slots are used", func() bool {
			starting, started := h.count()
			return starting == limit || started == pods
		})
		h.readyOne()
	}
	for h.readyOne() {
	}
	n.slotsFree()
	starting, started := h.count()
	assert.Zero(t, starting)
	assert.Equal(t, pods, started)
	assert.Equal(t, limit, h.most)
	n.noHookIsLeft()
}
