package plugin

import (
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// refusalPoint is where a pod is refused.
type refusalPoint string

const (
	atSandbox   refusalPoint = "sandbox"
	atContainer refusalPoint = "container"
)

// Bounds of refusing at the sandbox, where it costs most: the network and the
// pause container were made before the runtime asked, and are taken down again.
const (
	sandboxRefusalCPU   = 200 * time.Millisecond // CPU time of one, measured with containerd 2.4 and runc
	containerRefusalCPU = 50 * time.Millisecond
	refusalShare        = 0.02 // of the node's CPU time
	refusalWindow       = time.Minute
)

// refusalCost remembers the refusals at the sandbox of the last minute. The zero
// value knows none.
type refusalCost struct {
	mu    sync.Mutex
	cores int
	times []time.Time
}

// atSandbox tells whether a pod is to be refused at the sandbox now, and counts
// it when it is.
func (c *refusalCost) atSandbox(now time.Time, at RefuseAt) bool {
	if at == RefuseContainer {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.times) > 0 && now.Sub(c.times[0]) >= refusalWindow {
		c.times = c.times[1:]
	}
	used := time.Duration(len(c.times)) * sandboxRefusalCPU
	if at == RefuseAuto && float64(used) >= refusalShare*float64(refusalWindow)*float64(max(1, c.cores)) {
		return false
	}
	c.times = append(c.times, now)
	return true
}

// refuse counts a refusal and gives the error that kubelet shows on the pod.
// container is the ID of the one that is refused; empty: the sandbox is.
func (p *pacer) refuse(r *record, at refusalPoint, container string, d throttle.Decision) error {
	p.metrics.refusals.WithLabelValues(string(at), string(d.Reason)).Inc()
	cost, count := containerRefusalCPU, &p.refusedContainers
	if at == atSandbox {
		cost, count = sandboxRefusalCPU, &p.refusedSandboxes
	}
	count.Add(1)
	p.metrics.refusalCPU.Add(cost.Seconds())
	fields := logrus.Fields{"at": at}
	if at == atContainer {
		fields["container_id"] = container
	}
	p.logWait(time.Now(), r, d, "start refused, kubelet tries again", fields)
	return fmt.Errorf("pod-pacemaker: waiting to start: %s (%s), %d ahead; kubelet tries again by itself", d.Reason, d.Held, d.Ahead)
}
