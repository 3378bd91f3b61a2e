package waiting

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
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
	refusalShare = 0.02        // of the CPU time of a core, for each core
	refusalSaved = time.Minute // the share of this time can be saved up at most; as much can be owed

	// SandboxRefusals is how many sandboxes may be refused in a minute, and at once after a quiet time. Each has an
	// address already, and clouds keep a released address for 30 seconds: 30 addresses of the node at this rate.
	SandboxRefusals = 60
)

// RefuseAt says where a pod that cannot wait is refused.
type RefuseAt string

// The places of refusal.
const (
	// RefuseAuto refuses at the sandbox while refusals cost little CPU time, otherwise at the container. Pods that may
	// fail for good if a container fails are refused at the sandbox at any cost.
	RefuseAuto      RefuseAt = "auto"
	RefuseSandbox   RefuseAt = "sandbox"
	RefuseContainer RefuseAt = "container"
)

// Refusals is the way to wait by being refused: kubelet tries again. It is safe for concurrent use.
type Refusals struct {
	*shared
	cpu       budget        // of the node, which the estimated cost of each refusal is charged to
	addresses *rate.Limiter // one token for each sandbox that may be refused now

	sandboxes, containers atomic.Uint64 // refused so far
}

func newRefusals(s *shared) *Refusals {
	share := refusalShare * float64(s.o.Cores)
	return &Refusals{
		shared: s, cpu: newBudget(share, time.Duration(share*float64(refusalSaved))),
		addresses: rate.NewLimiter(rate.Every(time.Minute/SandboxRefusals), SandboxRefusals),
	}
}

// refuse counts a refusal, and returns the error that refuses the pod. made is refused, and since is when its pod began
// to wait. kubelet writes the error into an event of the pod and into its status. So while kubelet tries again, the
// error stays the same: another text would be another write to the API server at each try.
func (r *Refusals) refuse(made observe.Made, d throttle.Decision, since time.Time) error {
	now := time.Now()
	cost, refused := sandboxRefusalCPU, &r.sandboxes
	if made.Container == "" {
		r.addresses.AllowN(now, 1)
	} else {
		cost, refused = containerRefusalCPU, &r.containers
	}
	refused.Add(1)
	r.cpu.charge(now, cost)
	if r.o.Refused != nil {
		r.o.Refused(cost)
	}
	final := d.Reason == gate.NodeShutdown || d.Reason == reasons.Deleted
	r.o.Observer.Report(observe.Refusal{Waits: observe.Waits{Made: made, Decision: d, Since: since, At: now}, CPU: cost, Final: final})
	if final {
		return fmt.Errorf("pod-pacemaker: not started: %s", observe.HeldBy(throttle.Held{Reason: d.Reason}))
	}
	return errWaiting
}

var errWaiting = errors.New("pod-pacemaker: waiting to start; kubelet tries again by itself, and kubectl pacemaker why, or pod-pacemaker why on the node, says what holds the pod")

// atSandbox reports whether a pod that has to wait is refused at the sandbox now. Pods that may not fail come first:
// half of the refusals are kept for them.
func (r *Refusals) atSandbox(now time.Time, mayFail bool) bool {
	least := 1
	if mayFail {
		least = SandboxRefusals / 2
	}
	switch {
	case r.NotAtSandbox() != "", r.o.RefuseAt == RefuseContainer, r.SandboxesLeft(now) < least:
		return false
	default:
		return r.o.RefuseAt == RefuseSandbox || !mayFail || r.cpu.left(now) >= sandboxRefusalCPU
	}
}

// SandboxesLeft returns how many sandboxes may be refused now.
func (r *Refusals) SandboxesLeft(now time.Time) int { return int(r.addresses.TokensAt(now)) }

// NotAtSandbox returns why the runtime forbids refusals at the sandbox, or "" if it does not.
func (r *Refusals) NotAtSandbox() string { return r.runtime.Load().barsSandbox }

// Counts returns how many sandboxes and containers were refused so far.
func (r *Refusals) Counts() (sandboxes, containers uint64) {
	return r.sandboxes.Load(), r.containers.Load()
}
