package plugin

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// keep starts a pod as kubelet would, with quick retries. The API server knows it as pod says. keep calls started
// with its container.
func (n *node) keep(name string, pod podwatch.Pod, started func(name, uid, containerID string), args ...string) {
	uid := runtimetest.NewUID()
	pod.UID, pod.Namespace, pod.Name, pod.RestartPolicy = uid, "default", name, "Always"
	pod.Containers, pod.Phase = containersNamed(podwatch.App, "app"), corev1.PodPending
	n.pods.tell(uid, func(p *podwatch.Pod) { *p = pod })
	n.kept.Go(func() {
		c, err := n.rt.Keep(n.ctx, runtimetest.PodSpec{Namespace: "default", Name: name, UID: uid}, 200*time.Millisecond,
			runtimetest.ContainerSpec{Name: "app", Args: args})
		if err == nil {
			started(name, uid, c.ID())
		} else if n.ctx.Err() == nil {
			n.t.Errorf("pod %s: %v", name, err)
		}
	})
}

// ready reports the containers of a pod as ready.
func (n *node) ready(uid, containerID string) {
	n.pods.tell(uid, func(p *podwatch.Pod) {
		p.Phase, p.ContainersReady, p.AllRunning = corev1.PodRunning, true, true
		p.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, ID: containerID}}
	})
}

// herd tracks the pods whose processes run and are not ready, as the runtime reports them.
type herd struct {
	n  *node
	mu sync.Mutex
	// starting are the container IDs, by pod UID, of running processes that are not ready.
	starting map[string]string
	most     int
	started  []string // names, in the order of their starts
}

func (h *herd) begins(name, uid, containerID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starting[uid] = containerID
	h.most = max(h.most, len(h.starting))
	h.started = append(h.started, name)
}

// readyOne makes one of the starting pods ready. It returns false if no pod starts.
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
		n.keep(fmt.Sprintf("pod-%d", i), podwatch.Pod{Probed: true}, h.begins, "sleep", "600")
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
