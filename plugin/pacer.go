package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// podSource is what the pacer asks about pods: the pod watch.
type podSource interface {
	Get(uid string) (podwatch.Pod, bool)
	Await(ctx context.Context, uid string) (podwatch.Pod, bool)
	Healthy() bool
}

// pacer turns what the runtime, the hooks and the pod watch tell into calls of
// the limiter, and chooses how a pod waits. Its methods are safe for concurrent
// use; those that may wait say so.
type pacer struct {
	options  Options
	limiter  *throttle.Limiter
	pods     podSource // nil: standalone
	gate     *gateUse
	hold     holdBudget
	refusals refusalCost
	metrics  *metrics
	log      logrus.FieldLogger
	notices  notices
	signs    *signs

	config atomic.Pointer[crd.Effective]
	// requestTimeout is when the runtime gives a handler up, in nanoseconds; 0: not known yet.
	requestTimeout atomic.Int64
	// For status: refusals at each point so far, and hooks in the gate now.
	refusedSandboxes, refusedContainers atomic.Uint64
	atGate                              atomic.Int64

	mu       sync.Mutex
	records  map[string]*record // by pod key
	starting map[string]struct{}

	turns turnBoard
	woken chan struct{} // holds at most one: run is to look at all starts
}

func newPacer(o Options, pods podSource, m *metrics) *pacer {
	p := &pacer{
		options: o, limiter: throttle.New(time.Now(), throttle.Settings{}), pods: pods,
		gate: newGateUse(o), metrics: m, log: o.Log, notices: noNotices{},
		signs:   newSigns(o),
		records: map[string]*record{}, starting: map[string]struct{}{},
		woken: make(chan struct{}, 1),
	}
	p.config.Store(&crd.Effective{Origin: crd.OriginNone})
	p.turns.init()
	return p
}

// configure puts a configuration in force.
func (p *pacer) configure(now time.Time, e crd.Effective, cores int) {
	p.config.Store(&e)
	s := throttle.Settings{MaxWait: e.Spec.GetMaxWait(), StartTimeout: e.Spec.GetStartTimeout()}
	s.MaxConcurrent, _ = e.Spec.ThrottleConfig.ConcurrencyLimit(cores)
	s.FillEvery, s.Burst, _ = e.Spec.ThrottleConfig.StartRate()
	p.limiter.Configure(now, s)
	p.log.WithFields(logrus.Fields{
		"config": e.Name, "origin": e.Origin, "generation": e.Generation,
		"max_concurrent": s.MaxConcurrent, "fill_every": s.FillEvery, "burst": s.Burst,
	}).Info("configuration in force")
}

// identify gives what the pod watch knows of a pod. For one that it does not
// know yet, and that would have to wait, it waits for the hold at most, so that
// the watch can catch up.
func (p *pacer) identify(ctx context.Context, sandbox *api.PodSandbox) (podwatch.Pod, bool) {
	if p.pods == nil {
		return podwatch.Pod{}, false
	}
	uid := podKey(sandbox)
	if pod, ok := p.pods.Get(uid); ok || !p.pods.Healthy() {
		return pod, ok
	}
	r := newRecord(sandbox)
	r.see(sandbox)
	if exemption(p.config.Load().Spec.Exemptions, r, podwatch.Pod{}, false) != "" {
		return podwatch.Pod{}, false
	}
	var pod podwatch.Pod
	var known bool
	p.held(ctx, func(ctx context.Context) { pod, known = p.pods.Await(ctx, uid) })
	return pod, known
}

// longestHold is how long one handler may wait in all: never beyond half the time
// after which the runtime closes the connection, and lets every pod go.
func (p *pacer) longestHold() time.Duration {
	hold := p.options.Hold
	if timeout := time.Duration(p.requestTimeout.Load()); timeout > 0 {
		hold = min(hold, timeout/2)
	}
	return hold
}

// held runs wait with a context that ends with ctx, or when the hold is used up.
func (p *pacer) held(ctx context.Context, wait func(context.Context)) {
	begin := time.Now()
	allowed := p.hold.take(begin, p.longestHold())
	if allowed <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	wait(ctx)
	took := time.Since(begin)
	p.hold.giveBack(allowed - took)
	p.metrics.held.Add(took.Seconds())
}

// recordOfLocked gives the record of the sandbox's pod, made where there was none, and
// takes over what the sandbox says. p.mu must be held.
func (p *pacer) recordOfLocked(pod *api.PodSandbox) *record {
	key := podKey(pod)
	r := p.records[key]
	if r == nil {
		r = newRecord(pod)
		p.records[key] = r
	}
	r.see(pod)
	return r
}

// join gives the ticket of a pod.
func (p *pacer) join(now time.Time, r *record, pod podwatch.Pod, arrived time.Time) *throttle.Ticket {
	return p.limiter.Join(now, throttle.Request{
		UID: r.uid, Name: r.title(), Priority: pod.Priority, Arrived: arrived,
		MaxWait: pod.ActiveDeadline / 10,
	})
}

// runSandbox decides at the first point: may the pod come up to wait near its
// turn. It may hold.
func (p *pacer) runSandbox(ctx context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, p.longestHold())
	defer cancel()
	pod, known := p.identify(ctx, sandbox)
	now := time.Now()
	r, d := p.letIn(now, sandbox, pod, known)
	if !d.Admitted {
		return p.refuse(r, atSandbox, d)
	}
	return nil
}

// letIn decides whether a sandbox may stay, and takes note of it.
func (p *pacer) letIn(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known bool) (*record, throttle.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.recordOfLocked(sandbox)
	if exemption(p.config.Load().Spec.Exemptions, r, pod, known) == "" {
		d := p.join(now, r, pod, time.Time{}).LetUp(now, p.options.GateTimeout)
		if !d.Admitted && p.refusals.atSandbox(now, p.options.RefuseAt) {
			r.refuse(sandbox.GetId(), now)
			return r, d
		}
	}
	r.enter(sandbox.GetId())
	return r, throttle.Decision{Admitted: true}
}

// createContainer decides at the second point: may the process start. It gives
// the hook with which the container waits, or nil to go on. It may hold.
func (p *pacer) createContainer(ctx context.Context, sandbox *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	ctx, cancel := context.WithTimeout(ctx, p.longestHold())
	defer cancel()
	pod, known := p.identify(ctx, sandbox)
	now := time.Now()
	p.mu.Lock()
	r := p.recordOfLocked(sandbox)
	r.enter(sandbox.GetId())
	r.create(ctr, now)
	begins := p.beginsLocked(r, ctr.GetName(), pod, known)
	exempt := exemption(p.config.Load().Spec.Exemptions, r, pod, known)
	p.mu.Unlock()

	switch begins {
	case startGoesOn:
		return nil, nil
	case startBeside:
		p.join(now, r, pod, time.Time{}).StartExempt(now)
		return nil, nil
	}
	t := p.join(now, r, pod, time.Time{})
	if exempt != "" {
		t.StartExempt(now)
		return nil, nil
	}
	d := t.TryStart(now)
	if d.Admitted {
		return nil, nil
	}
	return p.wait(ctx, t, r, ctr, pod, known, d)
}

// wait chooses how a container waits that may not start now: in the gate, for
// the hold, or by being refused.
func (p *pacer) wait(ctx context.Context, t *throttle.Ticket, r *record, ctr *api.Container, pod podwatch.Pod, known bool, d throttle.Decision) (*api.Hook, error) {
	now := time.Now()
	barred := p.gate.barred(pod, known, ctr.GetName())
	if barred == "" {
		if room := t.LetUp(now, p.options.GateTimeout); !room.Admitted {
			return nil, p.refuse(r, atContainer, room)
		}
		return p.hook(now, r, ctr.GetId()), nil
	}
	// Nobody can wait for this container outside the handler. Where its turn is
	// next, a moment may do.
	if d.Ahead == 0 {
		p.held(ctx, func(ctx context.Context) {
			t.Attend(now)
			defer func() { t.Leave(time.Now()) }()
			select {
			case <-t.Decided():
			case <-ctx.Done():
			}
		})
		if d = t.TryStart(time.Now()); d.Admitted {
			return nil, nil
		}
	}
	return nil, p.refuse(r, atContainer, d)
}

// hook gives the OCI hook with which a container waits in the gate.
func (p *pacer) hook(now time.Time, r *record, containerID string) *api.Hook {
	deadline := now.Add(p.options.GateTimeout)
	v, _ := p.limiter.View(now, r.uid)
	leave := now.Add(v.Expected)
	if leave.After(deadline) {
		leave = deadline
	}
	return gate.Hook(p.options.GatePath, gate.Args{
		Socket: p.options.SocketPath(), PodUID: r.uid, ContainerID: containerID, Name: r.title(),
		Since: v.Arrived, Deadline: deadline, LeaveAt: leave, Made: now,
	})
}
