package waiting

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// porch is another way to wait, and shows that one is a type in one file and its place in the lists of New. The containers
// named "porch" wait in a hook until their turn, and are not told when that is expected.
type porch struct {
	*shared
	mu    sync.Mutex
	taken map[string]bool // containers with a hook, by ID
}

var _ follower = (*porch)(nil)

func (*porch) bars(_ time.Time, held *heldContainer) string {
	if held.Container != "porch" {
		return "it has another name"
	}
	return ""
}

func (p *porch) take(_ context.Context, now time.Time, held *heldContainer) (*api.Hook, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[held.id] = true
	hello := wire.Hello{PodUID: held.UID, ContainerID: held.id, Name: held.NamespacedName(), Since: held.Since, Deadline: now.Add(time.Hour)}
	argv := wire.Argv(p.o.Gate.Socket, hello, wire.Answer{Kind: wire.Turn, LeaveAt: now.Add(time.Hour)}, held.cgroup)
	return &api.Hook{Path: p.o.Gate.Path, Args: append([]string{p.o.Gate.Path}, argv...)}, nil
}

func (p *porch) hosts(h gate.Hello) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[h.ContainerID]
}

func (p *porch) wait(ctx context.Context, h gate.Hello, _ gate.SendTurn) (gate.Verdict, error) {
	t, gone := p.o.Starts.HookTicket(podOf(h), h.ContainerID, h.Since)
	defer t.Wait(time.Now())()
	for {
		state, changed := p.o.Starts.Valve.Now()
		if state.Unheld {
			t.StartUnheld(time.Now())
			return gate.Verdict{Go: true, Reason: p.o.Starts.Valve.WhyUnheld()}, nil
		}
		select {
		case <-t.Decided():
			return decided(t, gone), nil
		case <-gone:
			return decided(t, gone), nil
		case <-changed:
		case <-ctx.Done():
			return gate.Verdict{}, ctx.Err()
		}
	}
}

func (*porch) connected()             {}
func (*porch) started(string, string) {}
func (*porch) forget(string)          {}
func (p *porch) gone(_, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, id)
}

func TestAnotherWayIsOneTypeInTheLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aNode(t)
		p := &porch{shared: n.shared, taken: map[string]bool{}}
		n.ways, n.hosts = append([]way{p}, n.ways...), append([]host{p}, n.hosts...)
		holder := n.occupy("holder")
		first := n.pod("first", has(podwatch.App, "porch")).runs()
		c := first.makes("porch")
		hook := c.hookAsks()
		second := n.pod("second").runs().waits("app")
		assert.Empty(t, hook.told(), "its own way answers")
		assert.NotEmpty(t, second.told(), "the gate answers")
		assert.Equal(t, 1, n.Gate.Waiters())

		holder.getsReady()
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, hook.result())
		assert.Equal(t, throttle.Starting, first.view().State)
		assert.False(t, second.over())

		c.runs()
		first.getsReady()
		assert.True(t, second.result().Go)
		c = n.pod("third", has(podwatch.App, "porch")).runs().makes("porch")
		hook = c.hookAsks()
		assert.False(t, hook.over())
		c.isRemoved()
		assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, hook.result())
	})
}
