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
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// porch is another way to wait, and shows that one is a type in one file and its places in the lists of New. The
// containers named "porch" wait there for a minute, and are refused if their turn has not come.
type porch struct {
	gate  *Gate
	mu    sync.Mutex
	taken map[string]bool // containers with a hook of the porch, by ID; the gate answers those of an earlier daemon
}

var _ follower = (*porch)(nil)

func (p *porch) bars(now time.Time, held *heldContainer) string {
	if held.Container != "porch" || !held.kubelet.StartsAgain(held.Container) {
		return "it has another name, or would be lost when the porch sends it away"
	}
	return p.gate.barsHook(now, held)
}

func (p *porch) take(_ context.Context, now time.Time, held *heldContainer) (*api.Hook, error) {
	p.mu.Lock()
	p.taken[held.made.Container] = true
	p.mu.Unlock()
	v, _ := p.gate.o.Starts.View(now, held.UID)
	return p.gate.hook(now, held, v, time.Minute), nil
}

func (p *porch) hosts(h gate.Hello) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[h.ContainerID]
}

func (p *porch) wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error) {
	return p.gate.waitFor(ctx, h, sendForecast, func(now time.Time, t starts.Ticket, gone <-chan struct{}) gate.Verdict {
		if isClosed(gone) || t.TryStart(now).Admitted {
			return decided(t, gone)
		}
		return gate.Verdict{Reason: reasons.GateExpired}
	})
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
		p := &porch{gate: n.Gate, taken: map[string]bool{}}
		n.ways, n.hosts = append([]way{p}, n.ways...), append([]host{p}, n.hosts...)
		holder := n.occupy("holder")
		first := n.pod("first", has(podwatch.App, "porch")).runs()
		tooLong := first.waits("porch")
		inGate := n.pod("second").runs().waits("app")
		n.passes(time.Minute)
		assert.Equal(t, gate.Verdict{Reason: reasons.GateExpired}, tooLong.result(), "its own way answers")
		assert.Equal(t, throttle.Waiting, first.view().State, "the pod keeps its place")
		assert.False(t, inGate.over(), "the gate answers")

		c := first.makes("porch")
		hook := c.hookAsks()
		holder.getsReady()
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, hook.result())
		assert.False(t, inGate.over())

		c.runs()
		first.getsReady()
		assert.True(t, inGate.result().Go)
		c = n.pod("third", has(podwatch.App, "porch")).runs().makes("porch")
		hook = c.hookAsks()
		assert.False(t, hook.over())
		c.isRemoved()
		assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, hook.result())
	})
}
