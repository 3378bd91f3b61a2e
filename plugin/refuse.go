package plugin

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// refusalPoint is where a pod is refused.
type refusalPoint string

const (
	atSandbox   refusalPoint = "sandbox"
	atContainer refusalPoint = "container"
)

// onlyRefused tells whether what a start is held for may last for hours, and nothing may
// pass it: a bound of running pods. Such a start waits by being refused and in no other way.
func onlyRefused(reason throttle.Reason) bool {
	return reason == throttle.PolicyRunning || reason == throttle.Unadmittable
}

// refuse counts a refusal and gives the error that kubelet shows on the pod.
// container is the ID of the one that is refused; empty: the sandbox is.
func (p *pacer) refuse(r *record, at refusalPoint, container string, d throttle.Decision) error {
	p.metrics.refusals.WithLabelValues(string(at), string(d.Reason)).Inc()
	count := &p.refusedContainers
	if at == atSandbox {
		count = &p.refusedSandboxes
	}
	count.Add(1)
	now := time.Now()
	p.metrics.refusalCPU.Add(p.refusals.add(now, at).Seconds())
	fields := logrus.Fields{"at": at}
	if at == atContainer {
		fields["container_id"] = container
	}
	p.logWait(now, r, d, "is refused, kubelet tries again", fields)
	if d.Reason == gate.NodeShutdown || d.Reason == throttle.Deleted {
		return fmt.Errorf("pod-pacemaker: not started: %s (%s)", d.Reason, admin.HeldText(d.Held))
	}
	return fmt.Errorf("pod-pacemaker: waiting to start: %s (%s), %d ahead; kubelet tries again by itself", d.Reason, admin.HeldText(d.Held), d.Ahead)
}
