package plugin

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

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
	n := newNode(t, "spec: {throttleConfig: {maxConcurrent: {value: 2}}}")
	h := &herd{n: n, starting: map[string]string{}}
	for i := range pods {
		n.keep(fmt.Sprintf("pod-%d", i), podwatch.Pod{Probed: true}, h.observe, "sleep", "600")
	}
	for done := 0; done < pods; done++ {
		n.eventually("slots are used", func() bool {
			starting, started := h.count()
			return starting == limit || started == pods
		})
		h.readyOne()
	}
	for h.readyOne() {
	}
	n.eventually("nobody waits or starts", func() bool {
		s := n.p.limiter.Snapshot(time.Now())
		return len(s.Waiting) == 0 && len(s.Starting) == 0
	})
	starting, started := h.count()
	assert.Zero(t, starting)
	assert.Equal(t, pods, started)
	assert.Equal(t, limit, h.most)
	n.eventually("no hook is left", func() bool { return n.rt.Hooks() == 0 })
}
