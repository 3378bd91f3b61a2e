package waiting

import (
	"slices"
	"sync"
	"time"
)

// CPU time that a refusal costs the node, of containerd, shims, runc and CNI plugins together. It was measured
// with containerd 2.4, runc and a CNI of two small plugins. When the runtime asks at the sandbox, the network
// and the pause container exist already, and a refusal removes them again.
const (
	sandboxRefusalCPU   = 200 * time.Millisecond
	containerRefusalCPU = 50 * time.Millisecond
)

// Limits of refusals at the sandbox.
const (
	refusalShare  = 0.02 // of the node's CPU time
	refusalWindow = time.Minute
)

// refusalCost estimates the CPU time that refusals cost this node. It is safe for concurrent use.
type refusalCost struct {
	mu     sync.Mutex
	cores  int
	recent []refusalMade
}

type refusalMade struct {
	at   time.Time
	cost time.Duration
}

// add counts a refusal, and returns its cost.
func (c *refusalCost) add(now time.Time, at RefuseAt) time.Duration {
	cost := containerRefusalCPU
	if at == RefuseSandbox {
		cost = sandboxRefusalCPU
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = append(c.recentLocked(now), refusalMade{at: now, cost: cost})
	return cost
}

// share returns the share of the node's CPU time that refusals cost over the last minute.
func (c *refusalCost) share(now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var used time.Duration
	for _, r := range c.recentLocked(now) {
		used += r.cost
	}
	return used.Seconds() / (refusalWindow.Seconds() * float64(max(1, c.cores)))
}

// recentLocked removes the refusals that are older than the window, and returns the others.
func (c *refusalCost) recentLocked(now time.Time) []refusalMade {
	c.recent = slices.DeleteFunc(c.recent, func(r refusalMade) bool { return now.Sub(r.at) >= refusalWindow })
	return c.recent
}
