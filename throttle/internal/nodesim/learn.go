package nodesim

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// course is the cost of a start so far, as the daemon finds it in its cgroup.
type course struct {
	key         string    // the key under which it is learned
	began       float64   // seconds
	disk        float64   // bytes
	cpu, waited float64   // seconds
	readings    []reading // the latest ones
	peak, idle  float64
	busy        bool
}

// uses counts what a starting pod used. A thread that its CPU limit holds back waits for a CPU, as the kernel counts it: in
// a cgroup with a limit of 0.2 cores, the one thread of a busy loop waited for 0.8 s of each second by its schedstat, and
// 0.63 by the cgroup's pressure.
func (p *pod) uses(past float64) {
	if p.does() == burns && (p.stage == launching || p.stage == starting) {
		p.took.cpu += p.rate * past
		p.took.waited += (1 - p.rate) * past
	}
	if p.does() == reads {
		p.took.disk += p.rate * past * streamBytes
	}
}

// A start is no longer idle if it wants busyCores and gets ranCores of them, as in the daemon.
const busyCores, ranCores = 0.5, 0.1

// reading is what was read of a start at one time, in seconds: the bytes it moved, the sum of cpu and waited, and waited.
type reading struct{ at, moved, wanted, waited float64 }

// lookBack is the time over which the daemon averages what a start does, seconds.
const lookBack = 2.0

// read takes a reading of a start.
func (c *course) read(now float64) {
	last := reading{at: c.began}
	if n := len(c.readings); n > 0 {
		last = c.readings[n-1]
	}
	if !c.busy {
		c.idle += max(0, now-last.at-(c.cpu+c.waited-last.wanted))
	}
	c.readings = append(c.readings, reading{now, c.disk, c.cpu + c.waited, c.waited})
	for len(c.readings) > 1 && now-c.readings[1].at >= lookBack-tiny {
		c.readings = c.readings[1:]
	}
	if !c.full() {
		return
	}
	use := c.lately()
	c.peak = max(c.peak, use.Cores)
	c.busy = c.busy || use.Cores >= busyCores && use.Cores-use.Waited >= ranCores
}

// full reports whether the readings cover all of lookBack.
func (c *course) full() bool {
	n := len(c.readings)
	return n > 0 && c.readings[n-1].at-c.readings[0].at >= lookBack-tiny
}

// lately returns what the start used, and how much of it lately.
func (c *course) lately() adaptive.Use {
	use := adaptive.Use{CPU: seconds(c.cpu), Delayed: seconds(c.waited), Disk: int64(c.disk), WaitedKnown: true}
	if len(c.readings) > 0 {
		first, last := c.readings[0], c.readings[len(c.readings)-1]
		over := max(lookBack, last.at-first.at)
		use.Cores, use.Waited, use.Reads = (last.wanted-first.wanted)/over, (last.waited-first.waited)/over, (last.moved-first.moved)/over
	}
	return use
}

// measure tells the limiter what the starts use. Like the daemon, it does so as often as the sensors are read, and
// for many starts at least once a second.
func (n *node) measure() {
	if n.limiter == nil || n.now < n.measureAt-tiny {
		return
	}
	starts := 0
	for _, p := range n.pods {
		switch p.stage {
		case launching, starting, probing:
			starts++
			p.took.read(n.now)
			n.limiter.Lookup(p.name).SetUse(p.took.lately())
		}
	}
	n.measureAt = n.now + min(1, readEvery*float64(1+starts/16))
}

// request returns the request with which a pod joins.
func (n *node) request(p *pod) throttle.Request {
	r := throttle.Request{UID: p.name, Name: "herd/" + p.name}
	if n.table == nil {
		return r
	}
	r.Profile = n.profile(p)
	return r
}

// patience is how soon its probe may kill it, as the daemon finds it; 0 if it has no probe.
func (p *pod) patience() time.Duration {
	switch {
	case !p.kind.Liveness:
		return 0
	case p.kind.Patience > 0:
		return seconds(p.kind.Patience)
	}
	return seconds(livenessDelay + livenessEvery*(livenessFailures-1))
}

// learnedAs is the key of its next start. A restart has a key of its own.
func (p *pod) learnedAs() string {
	if p.life.Kills > 0 {
		return p.key + " again"
	}
	return p.key
}

// profile is what the table knows of the next start of a pod.
func (n *node) profile(p *pod) throttle.Profile {
	known := throttle.Profile{Kind: p.learnedAs(), Patience: p.patience()}
	if cost, rank := n.table.Expect([]string{known.Kind, p.key, p.key + " again"}); rank >= 0 {
		known.Cost = &cost
	}
	return known
}

// learn records what the start of a pod took.
func (n *node) learn(p *pod, killed bool, now time.Time) {
	if n.table == nil {
		return
	}
	c, wall := p.took, n.now-p.took.began
	took := costs.Start{CPU: seconds(c.cpu), Wall: seconds(wall), Waited: seconds(c.waited), Idle: seconds(c.idle), Peak: c.peak, Killed: killed}
	if !c.full() {
		took.Peak = (c.cpu + c.waited) / wall
	}
	if !c.busy {
		took.Idle = seconds(max(0, wall-c.cpu-c.waited))
	}
	took.Disk = int64(c.disk)
	key := c.key
	n.table.Observe([]string{key}, took, now)
	if n.limiter == nil {
		return
	}
	profiles := map[string]throttle.Profile{}
	for _, o := range n.pods {
		if o.ticket != nil && o.learnedAs() == key {
			profiles[o.name] = n.profile(o)
		}
	}
	n.limiter.SetProfiles(now, profiles)
}

// streamBytes is what a stream of the disk moves in a second.
const streamBytes = 100e6
