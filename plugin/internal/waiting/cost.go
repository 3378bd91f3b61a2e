package waiting

import (
	"slices"
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
	mu     sync.Mutex
	cores  int
	recent []refusalMade
}

// refusalMade is one refusal.
type refusalMade struct {
	at   time.Time
	cost time.Duration
}

// add counts a refusal, and gives what it costs.
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

// share returns the share of the node's CPU time that refusals cost over the last
// minute.
func (c *refusalCost) share(now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var used time.Duration
	for _, r := range c.recentLocked(now) {
		used += r.cost
	}
	return used.Seconds() / (refusalWindow.Seconds() * float64(max(1, c.cores)))
}

// recentLocked forgets the refusals that are older than the window, and returns the others.
func (c *refusalCost) recentLocked(now time.Time) []refusalMade {
	c.recent = slices.DeleteFunc(c.recent, func(r refusalMade) bool { return now.Sub(r.at) >= refusalWindow })
	return c.recent
}
