package waiting

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// asker is a process that waits: a hook in the gate, or the CNI plugin of a pod in the waiting room.
type asker struct {
	n     *node
	leave context.CancelFunc // the process ends

	mu        sync.Mutex
	forecasts []forecast
	ended     bool
	answer    gate.Verdict
	err       error
}

// forecast is what a process is told of its turn.
type forecast struct {
	leaveAt time.Time
	place   int
}

// asks makes a process ask for its turn.
func (n *node) asks(h gate.Hello) *asker {
	ctx, leave := context.WithCancel(n.t.Context())
	a := &asker{n: n, leave: leave}
	go func() {
		answer, err := n.Wait(ctx, h, func(leaveAt time.Time, place int, _ time.Duration) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.forecasts = append(a.forecasts, forecast{leaveAt, place})
		})
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ended, a.answer, a.err = true, answer, err
	}()
	n.passes(0)
	return a
}

// told returns the forecasts that the process was told.
func (a *asker) told() []forecast {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.forecasts)
}

// over reports whether the process got its answer, or has ended.
func (a *asker) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// hangsUp ends the process while it waits.
func (a *asker) hangsUp() {
	a.n.t.Helper()
	a.leave()
	a.n.passes(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.ErrorIs(a.n.t, a.err, context.Canceled)
}

// hookAsks makes the container's hook ask, with what it was given as arguments.
func (c container) hookAsks() *asker {
	t := c.pod.n.t
	t.Helper()
	require.NotNil(t, c.hook, "%s need not wait", c.GetId())
	assert.Equal(t, c.pod.n.o.Gate.Path, c.hook.Args[0])
	_, hello, _, _, err := wire.ParseArgv(c.hook.Args[1:])
	require.NoError(t, err)
	return c.pod.n.asks(hello)
}

// makes makes a container that gets a hook.
func (p *pod) makes(name string) container {
	p.n.t.Helper()
	c, err := p.create(name)
	require.NoError(p.n.t, err)
	return c
}

// waits makes a container whose hook waits.
func (p *pod) waits(name string) *asker {
	p.n.t.Helper()
	a := p.makes(name).hookAsks()
	require.False(p.n.t, a.over(), "%s does not wait", p.uid)
	return a
}

// entersRoom makes the pod's CNI plugin ask for admission to its sandbox.
func (p *pod) entersRoom() *asker { return p.entersRoomUntil(time.Time{}, time.Hour) }

// entersRoomUntil is entersRoom of a process that has waited since a time, and waits for d at most.
func (p *pod) entersRoomUntil(since time.Time, d time.Duration) *asker {
	return p.n.asks(gate.Hello{
		PodUID: p.uid, ContainerID: "s-" + p.uid, Name: p.sandbox.GetNamespace() + "/" + p.uid, Since: since, Deadline: time.Now().Add(d), Room: true,
	})
}

// result returns the answer, which must have come.
func (a *asker) result() gate.Verdict {
	a.n.t.Helper()
	a.n.passes(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	require.True(a.n.t, a.ended, "the process waits")
	require.NoError(a.n.t, a.err)
	return a.answer
}
