package starts

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// PodWatch is the pod watch. [podwatch.Watch] documents the methods.
type PodWatch interface {
	Get(uid string) (podwatch.Pod, bool)
	Await(ctx context.Context, uid string) (podwatch.Pod, bool)
	Healthy() bool
	HealthySince(t time.Time) bool
	OnNode() (pods []podwatch.Pod, listed bool)
	SelectBy(selects func(namespace string, labels map[string]string) []string, within time.Duration)
}

// Options are the parts of a Starts. All are required unless a comment says otherwise.
type Options struct {
	Pods     PodWatch // nil if the daemon is standalone: then there is no pod watch
	Observer *observe.Observer
	Memory   *learning.Memory
	Log      logrus.FieldLogger
	// Server reports whether there is an API server. From it, policies learn the labels of namespaces and the starts of
	// other nodes.
	Server bool
	// Waitable is how long a process can wait in the gate.
	Waitable time.Duration
	// KeepReady keeps what Starts.Begin of the next daemon gets. If it is nil, nothing is kept. It may write a small file,
	// and must be safe for concurrent use.
	KeepReady func(ReadyOnce)
	// Relist returns within which time the pod watch lists all pods again for a new selector. It is required
	// with Pods.
	Relist func() time.Duration
	// PoliciesChanged is called after a change of the policies. It must not block.
	PoliciesChanged func(policies.Changes)
	// Roots are the paths of the host's /proc and cgroups.
	Roots  usage.Roots
	Timing Timing
	Links
}

// Links are what a Starts calls of the parts that are made after it. All are required, Node only with Options.Pods. None may
// block.
type Links struct {
	// Round is called in each round of the loop with the tickets that wait, in the order of the queue. It returns
	// for which of them a process waits in the waiting room, by UID, and when to call it again at the latest, or zero if
	// something has to happen first.
	Round func(now time.Time, waiting []throttle.TicketView) (inRoom map[string]bool, again time.Time)
	// Node returns the UID of this node's Node object and when it was made. Both are zero if it is not known.
	Node func() (uid string, made time.Time)
	// Forgotten is called for each pod that is forgotten. It must be safe for concurrent use.
	Forgotten func(uid string)
}

// Timing holds the intervals and thresholds of a Starts.
type Timing struct {
	Quiet  usage.QuietOptions
	Stalls usage.StallOptions
	// RunFor is how long every container of a pod must run before its start can end without a report of kubelet.
	RunFor time.Duration
	// Rejoin is the longest wait for hooks that outlived an earlier daemon.
	Rejoin time.Duration
	// RoomReturns is how long no pod is admitted after the daemon begins to answer hooks. Nothing lists the processes in
	// the waiting room; they can return in this time. It is zero if there is no waiting room.
	RoomReturns time.Duration
}

// DefaultTiming returns the timing of the daemon.
func DefaultTiming() Timing {
	return Timing{
		Quiet: usage.DefaultQuiet(), Stalls: usage.DefaultStalls(), RunFor: 10 * time.Second,
		Rejoin: 2 * time.Second,
	}
}

// Starts decides which pod starts next, and when its start is over. Make it with New. Its methods are safe for
// concurrent use. They do not block, except for Run, Alive and Thaw.
type Starts struct {
	o Options

	// SettledBusy counts the starts that ended as Settled while their pod kept a CPU busy: they needed a probe.
	SettledBusy atomic.Uint64

	config    atomic.Pointer[crd.Effective]
	inForce   atomic.Pointer[policies.Set]   // replaced only while mu is held
	selectors atomic.Pointer[afterSelectors] // of startAfter
	woken     chan struct{}                  // holds at most one: the loop is to do a round
	pulse     chan chan<- struct{}           // the loop closes each after another round
	meter     *usage.Meter                   // only the loop uses it
	news      atomic.Bool                    // more is known of what starts under way are expected to take

	mu     sync.Mutex
	ledger ledger // guarded by mu
}

// New returns a Starts with no limit in force. It makes the limiter.
func New(o Options) *Starts {
	s := &Starts{
		o: o, woken: make(chan struct{}, 1), pulse: make(chan chan<- struct{}), meter: usage.NewMeter(o.Roots, o.Timing.Stalls, o.Timing.Quiet),
	}
	s.config.Store(&crd.Effective{Origin: crd.OriginNone})
	s.inForce.Store(policies.New(o.Server))
	s.selectors.Store(&afterSelectors{})
	s.ledger = newLedger(time.Now(), o.Waitable, &s.config)
	return s
}

// Link sets Options.Links. Call it once, before all other methods.
func (s *Starts) Link(l Links) { s.o.Links = l }

// Configure puts a configuration in force, with the settings of the limiter that follow from it. Calls must not
// overlap.
func (s *Starts) Configure(now time.Time, e crd.Effective, settings throttle.Settings) {
	before, live := s.mode(), s.live()
	s.config.Store(&e) // before the limits, so that the pods that these admit count in its mode
	s.setStartAfter(now, e.Spec)
	s.limit(now, settings, before, live)
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.InMode(now, e.Spec.GetMode()) })
	s.lock()
	if s.mode() != before {
		s.ledger.endsChanged() // once no limit of the earlier mode holds a pod
	}
	waiting := slices.Clone(s.ledger.limiter.Waiting())
	s.unlock()
	for _, t := range waiting {
		s.review(now, t.UID(), t.Name()) // it may be exempt now
	}
}

// limit puts settings of the limiter in force. before is the mode until now, and live are the starts that wait or are under
// way.
func (s *Starts) limit(now time.Time, settings throttle.Settings, before v1alpha1.Mode, live []*throttle.Ticket) {
	known := map[string]podwatch.Pod{}
	for _, t := range live {
		known[t.UID()] = s.Known(t.UID())
	}
	s.lock()
	defer s.unlock()
	l := &s.ledger
	if mode := l.mode(); mode != before && mode != v1alpha1.ModeShadow {
		l.endShadows(now, known) // before the limits: a start that continued at once is not admitted now
	}
	l.limiter.Configure(now, settings)
}

// Config returns the configuration in force.
func (s *Starts) Config() crd.Effective { return *s.config.Load() }

// Known returns what the pod watch knows of a pod. It is the zero value if that does not know it, or there is none.
func (s *Starts) Known(uid string) (pod podwatch.Pod) {
	if s.o.Pods != nil {
		pod, _ = s.o.Pods.Get(uid)
	}
	return pod
}
