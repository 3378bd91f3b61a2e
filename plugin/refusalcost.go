package plugin

import (
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

// What a refusal costs the node, measured with containerd 2.4, runc and a CNI of two
// small plugins: the CPU time of containerd, shims, runc and CNI plugins together. At
// the sandbox the network and the pause container were made before the runtime asks,
// and are taken down again.
const (
	sandboxRefusalCPU   = 200 * time.Millisecond
	containerRefusalCPU = 50 * time.Millisecond
)

// runtimeSpends is what containerd itself, with the programs that it waits for, spent
// there on what it tells the plugin of; without the shims, whose time is not told
// once they are gone.
var runtimeSpends = map[string]time.Duration{
	"RunPodSandbox":      43 * time.Millisecond,
	"RemovePodSandbox":   55 * time.Millisecond,
	"CreateContainer":    11 * time.Millisecond,
	"PostStartContainer": 25 * time.Millisecond,
}

// Bounds of refusing and of measuring what it costs.
const (
	refusalShare  = 0.02 // of the node's CPU time
	refusalWindow = time.Minute
	// sampleEvery is the least time between two readings of the runtime's CPU time;
	// after idleAfter without a call the runtime was idle.
	sampleEvery, idleAfter = time.Second, 5 * time.Second
	// enoughSpent is how much has to have been spent for a comparison.
	enoughSpent = time.Second
	// newestCounts is the weight of the newest comparison.
	newestCounts = 0.3
	// leastFactor and mostFactor bound what is believed.
	leastFactor, mostFactor = 0.25, 8.0
)

// refusalCost says what refusals cost this node. The CPU time of one refusal cannot be
// seen: it is spread over programs that come and go, beside others that start pods.
// What can be seen is the CPU time of containerd and of all that it has waited for.
// Compared with what the same calls cost it where they were measured alone, it gives
// the factor between that machine and this node, with its CPU, its runtime and its
// network. Until there is a comparison the factor is 1. Safe for concurrent use.
type refusalCost struct {
	mu     sync.Mutex
	cores  int
	recent []refusalMade // of the last window

	usage   func() (time.Duration, bool) // the runtime's CPU time so far; nil: not to be seen
	last    time.Time                    // of the last reading; zero: none
	lastCPU time.Duration
	pending time.Duration // expected of the calls since the last reading
	idle    float64       // CPU-seconds per second of a runtime that nobody calls
	// spent is the runtime's CPU time beyond idle since the last comparison, expected
	// what the calls would have cost where they were measured.
	spent, expected time.Duration
	factor          float64 // 0: no comparison yet
}

// refusalMade is one refusal.
type refusalMade struct {
	at   time.Time
	what refusalPoint
}

// connected takes over the runtime whose CPU time tells.
func (c *refusalCost) connected(procRoot string, runtime processOfNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage, c.last, c.pending, c.spent, c.expected = nil, time.Time{}, 0, 0, 0
	if runtime.pid != 0 {
		c.usage = func() (time.Duration, bool) { return cpuOf(procRoot, runtime) }
	}
}

// called takes note of a call of the runtime that has ended.
func (c *refusalCost) called(now time.Time, handler string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usage == nil {
		return
	}
	if c.last.IsZero() || now.Before(c.last) || now.Sub(c.last) >= sampleEvery {
		c.sampleLocked(now)
	}
	c.pending += runtimeSpends[handler]
}

func (c *refusalCost) sampleLocked(now time.Time) {
	cpu, ok := c.usage()
	if !ok {
		c.usage = nil
		return
	}
	took, used := now.Sub(c.last), cpu-c.lastCPU
	first := c.last.IsZero() || took <= 0 || used < 0
	pending := c.pending
	c.last, c.lastCPU, c.pending = now, cpu, 0
	if first {
		return
	}
	if took >= idleAfter {
		// Nearly all of it was idle: the least that was seen lately is the truest.
		if rate := used.Seconds() / took.Seconds(); c.idle == 0 || rate < c.idle {
			c.idle = rate
		} else {
			c.idle *= 1.05
		}
		return
	}
	c.spent += max(0, used-time.Duration(c.idle*float64(took)))
	c.expected += pending
	if c.expected >= enoughSpent {
		c.compareLocked()
	}
}

func (c *refusalCost) compareLocked() {
	factor := min(max(float64(c.spent)/float64(c.expected), leastFactor), mostFactor)
	if c.factor == 0 {
		c.factor = factor
	} else {
		c.factor += newestCounts * (factor - c.factor)
	}
	c.spent, c.expected = 0, 0
}

// add counts a refusal, and gives what it costs.
func (c *refusalCost) add(now time.Time, what refusalPoint) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent = append(c.recent, refusalMade{at: now, what: what})
	return c.costLocked(what)
}

func (c *refusalCost) costLocked(what refusalPoint) time.Duration {
	cost := containerRefusalCPU
	if what == atSandbox {
		cost = sandboxRefusalCPU
	}
	if c.factor == 0 {
		return cost
	}
	return time.Duration(c.factor * float64(cost))
}

// share gives the share of the node's CPU time that refusals cost over the last
// minute, and whether that follows from what was measured on this node.
func (c *refusalCost) share(now time.Time) (share float64, measured bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shareLocked(now), c.factor != 0
}

func (c *refusalCost) shareLocked(now time.Time) float64 {
	for len(c.recent) > 0 && now.Sub(c.recent[0].at) >= refusalWindow {
		c.recent = c.recent[1:]
	}
	var used time.Duration
	for _, r := range c.recent {
		used += c.costLocked(r.what)
	}
	return used.Seconds() / (refusalWindow.Seconds() * float64(max(1, c.cores)))
}

// atSandbox tells whether a pod is to be refused at the sandbox now.
func (c *refusalCost) atSandbox(now time.Time, at RefuseAt) bool {
	if at != RefuseAuto {
		return at == RefuseSandbox
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shareLocked(now) < refusalShare
}

// cpuOf gives the CPU time of a process and of all that it has waited for; false: it
// is gone.
func cpuOf(procRoot string, process processOfNode) (time.Duration, bool) {
	fs, err := procfs.NewFS(procRoot)
	if err != nil {
		return 0, false
	}
	proc, err := fs.Proc(process.pid)
	if err != nil {
		return 0, false
	}
	stat, err := proc.Stat()
	if err != nil || stat.Starttime != process.started {
		return 0, false
	}
	const tick = time.Second / 100 // USER_HZ: in /proc it is 100 on every architecture of Go
	return time.Duration(int(stat.UTime)+int(stat.STime)+stat.CUTime+stat.CSTime) * tick, true
}
