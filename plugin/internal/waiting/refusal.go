package waiting

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// RefuseAt says at which of the two points a pod that cannot wait is refused.
type RefuseAt string

// The points of refusal.
const (
	// RefuseAuto refuses at the sandbox while that costs little CPU, above that
	// at the container.
	RefuseAuto      RefuseAt = "auto"
	RefuseSandbox   RefuseAt = "sandbox"
	RefuseContainer RefuseAt = "container"
)

// Refusals are the way to wait by being refused: kubelet tries again. Safe for concurrent use.
type Refusals struct {
	at       RefuseAt
	runtime  *atomic.Pointer[runtime]
	cost     refusalCost
	limiter  *throttle.Limiter
	observer *observe.Observer

	sandboxes, containers atomic.Uint64 // refused so far
}

func newRefusals(o Options, r *atomic.Pointer[runtime]) *Refusals {
	return &Refusals{
		at: o.RefuseAt, runtime: r, cost: refusalCost{cores: o.Cores}, limiter: o.Starts.Limiter, observer: o.Observer,
	}
}

// refuse counts a refusal and gives the error that kubelet shows on the pod.
// container is the ID of the one that is refused; empty: the sandbox is.
func (r *Refusals) refuse(p pods.Pod, container string, d throttle.Decision) error {
	now := time.Now()
	at, refused, fields := RefuseSandbox, &r.sandboxes, logrus.Fields{}
	if container != "" {
		at, refused, fields["container_id"] = RefuseContainer, &r.containers, container
	}
	fields["at"] = at
	refused.Add(1)
	r.observer.Refused(string(at), d.Reason, r.cost.add(now, at))
	v, _ := r.limiter.View(now, p.UID)
	r.observer.Waits(now, observe.Wait{
		UID: p.UID, Name: p.Title(), Decision: d, Since: v.Arrived,
		Message: "is refused, kubelet tries again", Fields: fields,
	})
	if d.Reason == gate.NodeShutdown || d.Reason == reasons.Deleted {
		return fmt.Errorf("pod-pacemaker: not started: %s (%s)", d.Reason, admin.HeldText(d.Held))
	}
	return fmt.Errorf("pod-pacemaker: waiting to start: %s (%s), %d ahead; kubelet tries again by itself", d.Reason, admin.HeldText(d.Held), d.Ahead)
}

// atSandbox reports whether a pod that waits is to be refused at the sandbox now.
func (r *Refusals) atSandbox(now time.Time) bool {
	switch {
	case r.NotAtSandbox() != "":
		return false
	case r.at != RefuseAuto:
		return r.at == RefuseSandbox
	default:
		return r.cost.share(now) < refusalShare
	}
}

// NotAtSandbox tells why nothing is refused at the sandbox, whatever the options say; empty: it may be.
func (r *Refusals) NotAtSandbox() string { return r.runtime.Load().barsSandbox }

// Counts returns how many sandboxes and containers were refused so far.
func (r *Refusals) Counts() (sandboxes, containers uint64) {
	return r.sandboxes.Load(), r.containers.Load()
}

// CPUShare returns the share of the node's CPU time that refusals cost over the last minute.
func (r *Refusals) CPUShare(now time.Time) float64 { return r.cost.share(now) }
