package plugin

import (
	"sync"
	"time"
)

// What a refusal costs the node, measured with containerd 2.4, runc and a CNI of two
// small plugins: the CPU time of containerd, shims, runc and CNI plugins together. At
// the sandbox the network and the pause container were made before the runtime asks,
// and are taken down again.
const (
	sandboxRefusalCPU   = 200 * time.Millisecond
	containerRefusalCPU = 50 * time.Millisecond
)

// Bounds of refusing at the sandbox.
const (
	refusalShare  = 0.02 // of the node's CPU time
	refusalWindow = time.Minute
)

// refusalCost says what refusals cost this node. Safe for concurrent use.
type refusalCost struct {
	spending runtimeSpending
	runtime  sandboxRefusal

	mu     sync.Mutex
	cores  int
	recent []refusalMade // of the last window
}

// refusalMade is one refusal.
type refusalMade struct {
	at   time.Time
	what refusalPoint
}

// add counts a refusal, and gives what it costs.
func (c *refusalCost) add(now time.Time, what refusalPoint) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(now) // nobody may ever ask for the share
	c.recent = append(c.recent, refusalMade{at: now, what: what})
	return c.cost(what)
}

func (c *refusalCost) cost(what refusalPoint) time.Duration {
	cost := containerRefusalCPU
	if what == atSandbox {
		cost = sandboxRefusalCPU
	}
	factor, _ := c.spending.factorNow()
	return time.Duration(factor * float64(cost))
}

// share gives the share of the node's CPU time that refusals cost over the last
// minute, and whether that follows from what was measured on this node.
func (c *refusalCost) share(now time.Time) (share float64, measured bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, measured = c.spending.factorNow()
	return c.shareLocked(now), measured
}

// forgetLocked drops what is older than the window.
func (c *refusalCost) forgetLocked(now time.Time) {
	for len(c.recent) > 0 && now.Sub(c.recent[0].at) >= refusalWindow {
		c.recent = c.recent[1:]
	}
}

func (c *refusalCost) shareLocked(now time.Time) float64 {
	c.forgetLocked(now)
	var used time.Duration
	for _, r := range c.recent {
		used += c.cost(r.what)
	}
	return used.Seconds() / (refusalWindow.Seconds() * float64(max(1, c.cores)))
}

// atSandbox tells whether a pod is to be refused at the sandbox now.
func (c *refusalCost) atSandbox(now time.Time, at RefuseAt) bool {
	if c.runtime.barred() != "" {
		return false
	}
	if at != RefuseAuto {
		return at == RefuseSandbox
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shareLocked(now) < refusalShare
}
