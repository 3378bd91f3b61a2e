package nodesim

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// course is what a start took so far, as the daemon finds it in its cgroup.
type course struct {
	key         string    // under which it is learned
	began       float64   // seconds
	disk        float64   // bytes
	moved       []float64 // disk at the last readings
	cpu, waited float64   // seconds
	wanted      []float64 // cpu and waited at the last readings
	peak, idle  float64
	busy        bool
}

// uses counts what a pod used that starts.
func (p *pod) uses(past float64) {
	if p.does() == burns && (p.stage == launching || p.stage == starting) {
		p.took.cpu += p.rate * past
		p.took.waited += (p.most() - p.rate) * past
	}
	if p.does() == reads {
		p.took.disk += p.rate * past * streamBytes
	}
}

// busyCores is from which rate on a start does not idle, as in the daemon.
const busyCores = 0.5

// read takes a reading of a start.
func (c *course) read(now float64) {
	c.moved = append(c.moved, c.disk)
	c.moved = c.moved[max(0, len(c.moved)-readings-1):]
	c.wanted = append(c.wanted, c.cpu+c.waited)
	if len(c.wanted) > readings+1 {
		c.wanted = c.wanted[1:]
	}
	if len(c.wanted) <= readings {
		return
	}
	cores := lately(c.wanted)
	c.peak = max(c.peak, cores)
	if !c.busy && cores >= busyCores {
		c.busy, c.idle = true, now-c.began-readings*readEvery
	}
}

// lately is the rate over the window.
func lately(of []float64) float64 {
	if len(of) < 2 {
		return 0
	}
	return (of[len(of)-1] - of[0]) / (readings * readEvery)
}

// measure tells the limiter what the starts use.
func (n *node) measure() {
	if n.table == nil || n.limiter == nil {
		return
	}
	for _, p := range n.pods {
		switch p.stage {
		case launching, starting, probing:
			p.took.read(n.now)
			n.limiter.SetUse(p.name, adaptive.Use{
				CPU: seconds(p.took.cpu), Disk: int64(p.took.disk), Cores: lately(p.took.wanted), Reads: lately(p.took.moved),
			})
		}
	}
}

// request is how a pod joins.
func (n *node) request(p *pod) throttle.Request {
	r := throttle.Request{UID: p.name, Name: "herd/" + p.name}
	if n.table == nil {
		return r
	}
	r.Expected = n.expected(p)
	return r
}

// patience is that of its probe, as its spec has it; 0: it has none.
func (p *pod) patience() time.Duration {
	switch {
	case !p.kind.Liveness:
		return 0
	case p.kind.Patience > 0:
		return seconds(p.kind.Patience)
	}
	return seconds(livenessDelay + livenessEvery*livenessFailures)
}

// learnedAs is the key of its next start; that of a restart is another.
func (p *pod) learnedAs() string {
	if p.life.Kills > 0 {
		return p.key + " again"
	}
	return p.key
}

// expected is what is known of the next start of a pod.
func (n *node) expected(p *pod) throttle.Expected {
	known := throttle.Expected{Kind: p.learnedAs(), Patience: p.patience()}
	if e, learned := n.table.Expect([]string{known.Kind, p.key, p.key + " again"}); learned {
		known.Cost = &e.Cost
	}
	return known
}

// learn takes in what the start of a pod took.
func (n *node) learn(p *pod, killed bool, now time.Time) {
	if n.table == nil {
		return
	}
	c, wall := p.took, n.now-p.took.began
	took := costs.Start{CPU: seconds(c.cpu), Wall: seconds(wall), Waited: seconds(c.waited), Idle: seconds(c.idle), Peak: c.peak, Killed: killed}
	if len(c.wanted) <= readings {
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
	expected := map[string]throttle.Expected{}
	for _, o := range n.pods {
		if o.ticket != nil && o.learnedAs() == key {
			expected[o.name] = n.expected(o)
		}
	}
	n.limiter.Expect(now, expected)
}

// streamBytes is what a stream of the disk moves in a second.
const streamBytes = 100e6
