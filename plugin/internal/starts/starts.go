package starts

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Source knows what kubelet and the API server say of pods: the pod watch.
type Source interface {
	Get(uid string) (podwatch.Pod, bool)
	Await(ctx context.Context, uid string) (podwatch.Pod, bool)
	Healthy() bool
	Heard(uid string) time.Time
	ListAnew(now time.Time, why string)
}

// Options say what Starts works with. All are needed but those that say so.
type Options struct {
	Limiter  *throttle.Limiter
	Pods     Source // nil: standalone, without a pod watch
	Policies *policies.Matcher
	Observer *observe.Observer
	Memory   *learning.Memory
	Board    *turns.Board
	Log      logrus.FieldLogger
	// Waitable is how long a process can wait in the gate.
	Waitable time.Duration
	// Round is called in each round of the loop with what the limiter holds: the signals may be
	// wanted, and claims. It marks tickets as present for which a process waits that the limiter
	// does not know, and gives when to call it again though nothing happens; zero: something has
	// to happen before. It must not block.
	Round func(now time.Time, held throttle.Snapshot) (again time.Time)
	// Forgotten is called for each pod of which nothing is kept any more.
	Forgotten func(uid string)
	// Roots are where the host's /proc and cgroups are.
	Roots  usage.Roots
	Timing Timing
}

// Timing is how often and for how long Starts looks at what. DefaultTiming is what the daemon uses.
type Timing struct {
	Quiet  usage.QuietOptions
	Stalls usage.StallOptions
	// RunFor is how long every container of a pod has to have run before its start can be over by
	// the node's own signs.
	RunFor time.Duration
	// Rejoin bounds the wait for hooks that outlived an earlier daemon.
	Rejoin time.Duration
	// Settle is for how long after the gate opens no pod is admitted, for processes that wait
	// before their pod's sandbox exists, of which there is no list. Zero: there are none.
	Settle time.Duration
	// MuteAfter is how long after a container began to run the API server has to have told of it,
	// MuteEvery the time between two looks whether it did.
	MuteAfter, MuteEvery time.Duration
}

// DefaultTiming is what the daemon uses.
func DefaultTiming() Timing {
	return Timing{
		Quiet: usage.DefaultQuiet(), Stalls: usage.DefaultStalls(), RunFor: 10 * time.Second,
		Rejoin: 2 * time.Second, MuteAfter: 30 * time.Second, MuteEvery: 10 * time.Second,
	}
}

// Starts decides which start goes on, and knows when each is over. Make it with New. Its methods
// are safe for concurrent use and do not block, but for Run, Alive and Hooks.Thaw.
type Starts struct {
	Options
	Runtime *RuntimeEvents // takes what the runtime tells
	Ledger  *Ledger        // the book of pods and the limiter, under one lock
	Valve   *Valve         // ends waits that are no use any more
	Hooks   *Rejoin        // those that outlived an earlier daemon
	ends    *ends
	loop    *loop

	config atomic.Pointer[crd.Effective]
	off    atomic.Bool // the mode is Off
}

// RuntimeEvents takes what the runtime tells of sandboxes and containers: it writes it into the book,
// and joins and ends tickets by it. It is part of a Starts. Its methods are safe for concurrent use and
// do not block.
type RuntimeEvents struct{ s *Starts }

// New returns a Starts with no limit in force.
func New(o Options) *Starts {
	s := &Starts{Options: o, Hooks: newRejoin(o.Limiter, o.Timing.Rejoin, o.Timing.Settle)}
	s.config.Store(&crd.Effective{Origin: crd.OriginNone})
	s.Ledger = newLedger(o.Limiter, o.Policies, &s.config)
	s.Valve = newValve(o, &s.config)
	s.Runtime = &RuntimeEvents{s: s}
	s.ends = &ends{s}
	s.loop = newLoop(s)
	return s
}

// Configure puts a configuration in force, and the settings that follow from it.
func (s *Starts) Configure(now time.Time, e crd.Effective, settings throttle.Settings) {
	before := s.Valve.Mode()
	waiting := len(s.Limiter.Snapshot(now).Waiting)
	off := e.Spec.GetMode() == v1alpha1.ModeOff
	s.off.Store(off) // before any pod is admitted for it
	s.Limiter.Configure(now, settings)
	s.Policies.Suspend(now, off)
	s.config.Store(&e) // after the limits: what status calls in force is
	s.changeMode(now, before, waiting)
	s.ends.judgeAllWaiting(now)
}

// Config returns the configuration in force.
func (s *Starts) Config() crd.Effective { return *s.config.Load() }

// known returns what the pod watch knows of a pod; nothing where there is none. The lock of the book must not be held.
func (s *Starts) known(uid string) (podwatch.Pod, bool) {
	if s.Pods == nil {
		return podwatch.Pod{}, false
	}
	return s.Pods.Get(uid)
}

// PodChanged takes over what the pod watch tells of a pod.
func (s *Starts) PodChanged(pod podwatch.Pod, deleted bool) {
	now := time.Now()
	s.regroup(now, pod, deleted)
	if deleted && !pod.Static { // of a static pod, only the mirror was deleted
		s.Ledger.forgetDeleted(now, pod.UID)
		s.forgotten(pod.UID)
		return
	}
	s.ends.podChanged(now, pod)
}

// forgotten tells others of a pod of which nothing is kept any more.
func (s *Starts) forgotten(uid string) {
	s.Observer.Forget(uid)
	s.Forgotten(uid)
}

// Run advances the limiter, and ends starts that are over, until ctx ends. It may be called again
// after a panic.
func (s *Starts) Run(ctx context.Context) error { return s.loop.run(ctx) }

// Alive blocks until Run has gone round once more; it fails if ctx ends before.
func (s *Starts) Alive(ctx context.Context) error { return s.loop.alive(ctx) }

// Wake makes Run look at all starts.
func (s *Starts) Wake() { s.loop.wake() }
