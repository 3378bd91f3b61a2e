package plugin

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// musterMost is how long an open gate waits for hooks that outlived an earlier
// daemon: they ask again within a quarter of a second, on a busy node later.
const musterMost = 2 * time.Second

// muster lets the hooks that outlived an earlier daemon come back before anybody
// is admitted. They come back in any order; the first would take a free slot that
// is another's, who has waited for longer and comes a moment later. Made by
// newMuster, and over until expect is called; safe for concurrent use.
type muster struct {
	order func() []string // the UIDs of those that wait, in their order
	most  time.Duration   // the time from the opening of the gate to the end

	mu       sync.Mutex
	called   bool                // expect was, or it is too late for that
	opened   bool                // the gate was
	expected map[string]struct{} // containers that were made and have not started: their hooks may wait
	came     []*throttle.Ticket  // one for each hook that stands here
	over     chan struct{}       // closed at the end; nil: it is over
}

func newMuster(order func() []string) *muster { return &muster{order: order, most: musterMost} }

// expect begins the muster, the first time that the runtime tells what it has. It
// is over at once where no container was made that has not started, or where the gate
// has long been open.
func (m *muster) expect(ctrs []*api.Container) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called {
		return
	}
	m.called, m.expected = true, map[string]struct{}{}
	for _, ctr := range ctrs {
		if ctr.GetState() == api.ContainerState_CONTAINER_CREATED {
			m.expected[ctr.GetId()] = struct{}{}
		}
	}
	if len(m.expected) > 0 {
		m.over = make(chan struct{})
	}
}

// hold ends the muster, most after the gate was opened, unless ctx ends before; it
// gives nil.
func (m *muster) hold(ctx context.Context) error {
	m.mu.Lock()
	m.opened = true
	over := m.over
	m.mu.Unlock()
	timer := time.NewTimer(m.most)
	defer timer.Stop()
	select {
	case <-over: // never, where it is nil
	case <-ctx.Done():
	case <-timer.C:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.called = true
		m.endLocked(time.Now())
	}
	return nil
}

// on tells whether the gate is open and the muster not over.
func (m *muster) on() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened && m.over != nil
}

// take takes a ticket, and gives what is closed when the muster is over; nil: it is
// already.
func (m *muster) take(t *throttle.Ticket, containerID string) (over <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	over = m.over // missLocked may end the muster
	if m.over != nil {
		m.came = append(m.came, t)
		m.missLocked(containerID)
	}
	return over
}

// join takes the ticket of a hook that has come, and blocks until the muster is
// over or ctx ends. It tells whether the ticket is attended then; if not, that is
// left to the caller.
func (m *muster) join(ctx context.Context, t *throttle.Ticket, containerID string) (attended bool) {
	over := m.take(t, containerID)
	if over == nil {
		return false
	}
	select {
	case <-over:
		return true
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.came, t)
	if i < 0 {
		return true // it was over at the same time
	}
	m.came = slices.Delete(m.came, i, i+1)
	return false
}

// miss expects the hook of a container no longer: the container started, or is gone.
func (m *muster) miss(containerID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missLocked(containerID)
}

func (m *muster) missLocked(containerID string) {
	delete(m.expected, containerID)
	if len(m.expected) == 0 {
		m.endLocked(time.Now())
	}
}

// endLocked attends the tickets of those that came, in the order of the queue.
func (m *muster) endLocked(now time.Time) {
	if m.over == nil {
		return
	}
	place := map[string]int{}
	for i, uid := range m.order() {
		place[uid] = i
	}
	slices.SortStableFunc(m.came, func(a, b *throttle.Ticket) int { return place[a.UID()] - place[b.UID()] })
	for _, t := range m.came {
		t.Wait(now)
	}
	m.came = nil
	close(m.over)
	m.over = nil
}
