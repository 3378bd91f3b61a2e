package waiting

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
	c.forgetLocked(now) // the share may never be asked for
	c.recent = append(c.recent, refusalMade{at: now, what: what})
	return what.cost()
}

// cost is the CPU time that one refusal is taken to cost.
func (p refusalPoint) cost() time.Duration {
	if p == atSandbox {
		return sandboxRefusalCPU
	}
	return containerRefusalCPU
}

// share returns the share of the node's CPU time that refusals cost over the last
// minute.
func (c *refusalCost) share(now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shareLocked(now)
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
		used += r.what.cost()
	}
	return used.Seconds() / (refusalWindow.Seconds() * float64(max(1, c.cores)))
}

// cheap reports whether refusals cost so little now that a pod may be refused at the sandbox.
func (c *refusalCost) cheap(now time.Time) bool { return c.share(now) < refusalShare }
