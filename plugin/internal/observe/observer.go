package observe

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Observer reports what the daemon does. It keeps the daemon alive when a part of it panics: see Caught, CaughtPod and
// Supervised. Make it with New. Its methods do not block, except Supervised. They are safe for concurrent use,
// except Happened, HappenedInShadow and LookAtWaiting, which only one goroutine may call.
type Observer struct {
	log     logrus.FieldLogger
	metrics *metrics
	events  Events
	pods    *podEvents
	nodes   func() int
	waits   sync.Map // when each pod joined the queue whose wait was logged, in nanoseconds, by UID
}

// Options configure an Observer. All fields are required.
type Options struct {
	Log    logrus.FieldLogger
	Events Events
	Nodes  func() int // returns the number of nodes of the cluster; 0: not known
}

// New returns an Observer with a registry of its own.
func New(o Options) *Observer {
	return &Observer{log: o.Log, metrics: newMetrics(), events: o.Events, pods: newPodEvents(), nodes: o.Nodes}
}

// Registry returns the registry of all metrics. The caller may add collectors to it.
func (o *Observer) Registry() *prometheus.Registry { return o.metrics.registry }

// Handler records how long a call of an NRI handler took. name is that of the call, such as RunPodSandbox.
func (o *Observer) Handler(name string, took time.Duration) {
	o.metrics.handlers.WithLabelValues(name).Observe(took.Seconds())
}

// HandlerWaited records how long an NRI handler waited on purpose.
func (o *Observer) HandlerWaited(d time.Duration) { o.metrics.handlerWait.Add(d.Seconds()) }

// Reasons why a process left the waiting room, besides the reasons of its answer.
const (
	// HungUp: it ended by itself, because the folder of the CNI configurations changed or the runtime ended it.
	HungUp reasons.Reason = "HungUp"
)

// LeftRoom records why a process left the waiting room, and how long it waited there. The reason is that of its
// answer, or HungUp.
func (o *Observer) LeftRoom(reason reasons.Reason, waited time.Duration) {
	o.metrics.roomWaits.WithLabelValues(string(reason)).Observe(waited.Seconds())
}

// Refused records a refusal. at is "sandbox" or "container"; cpu is the CPU time that the refusal costs the node, by an
// estimate.
func (o *Observer) Refused(at string, reason reasons.Reason, cpu time.Duration) {
	o.metrics.refusals.WithLabelValues(at, string(reason)).Inc()
	o.metrics.refusalCPU.Add(cpu.Seconds())
}

// Learned records what the start of a pod took, what it was expected to take when it began, and the basis of that
// estimate: Owner, Image, Revisions, Node or None. A start that was killed is only logged: it would have taken more.
func (o *Observer) Learned(uid, name string, took costs.Start, basis string, expected costs.Cost) {
	cpu := took.CPU.Seconds()
	o.PodLog(uid, name).WithFields(logrus.Fields{
		"cpu_ms": took.CPU.Milliseconds(), "wall_ms": took.Wall.Milliseconds(), "waited_ms": took.Waited.Milliseconds(),
		"idle_ms": took.Idle.Milliseconds(), "peak_cores": took.Peak, "disk_bytes": took.Disk, "killed": took.Killed,
		"basis": basis, "expected_cpu_ms": int64(1000 * expected.CPU.Mean),
	}).Debugf("learned what the start of pod %s took", name)
	if took.Killed {
		return
	}
	o.metrics.startCPU.WithLabelValues(basis).Add(cpu)
	o.metrics.expectedCPU.WithLabelValues(basis).Add(expected.CPU.Mean)
	if expected.CPU.Mean > 0 {
		o.metrics.costRatio.WithLabelValues(basis).Observe(cpu / expected.CPU.Mean)
	}
}

// Configured records which configuration is in force: its name, where it comes from, and its generation.
func (o *Observer) Configured(name, origin string, generation int64) {
	o.metrics.generation.Reset()
	o.metrics.generation.WithLabelValues(name, origin).Set(float64(generation))
}

// Scraped is what the collectors read at each scrape.
type Scraped struct {
	Groups            func(now time.Time) []throttle.GroupView
	Status            func() admin.Status // may block for 250 ms
	Policies          func() []policies.State
	Claims            func() leases.View // of policies with the scope Cluster
	RegistrationWaits func() bool        // reports whether registration waits until a container is stopped
	LogDropped        func() uint64      // returns how many log entries were dropped; nil: none
}

// Collect adds collectors to the registry that read s at each scrape. Call it once.
func (o *Observer) Collect(s Scraped) {
	for _, metrics := range []*scrape{newStateMetrics(s), newPolicyMetrics(s.Policies, s.Groups), newClaimMetrics(s.Claims)} {
		o.metrics.registry.MustRegister(guarded{metrics, o})
	}
}

// Node writes an event on the node. kind is Normal or Warning; reason is one word.
func (o *Observer) Node(kind, reason, message string) { o.events.Node(kind, reason, message) }

// Happened reports an event of the limiter to the log, the metrics and the pod. container is the ID of the pod's
// container that was made last, or empty. off reports whether the mode is Off, in which admissions are unpaced
// starts. A panic is caught.
func (o *Observer) Happened(e throttle.Event, container string, off bool) {
	defer o.CaughtPod("Happened", e.Ticket.UID(), e.Ticket.Name())
	o.metrics.observe(e)
	o.logEvent(e, container)
	o.pods.happened(o.events, e)
	if e.State == throttle.Starting && e.Reason == reasons.WithinLimits && off {
		o.CountUnpaced(Off)
	}
}

// HappenedInShadow reports what would have happened in the mode Enforce to a start that continued at once, and
// the reason for which it would have waited. It writes no event on the pod, because nothing happened to the pod. A
// panic is caught.
func (o *Observer) HappenedInShadow(e throttle.Event, reason reasons.Reason) {
	defer o.CaughtPod("HappenedInShadow", e.Ticket.UID(), e.Ticket.Name())
	o.pods.forget(e)
	log := o.PodLog(e.Ticket.UID(), e.Ticket.Name()).WithFields(logrus.Fields{
		"waiting": e.Waiting, "starting": e.Starting, "reason": reason,
	})
	switch e.State {
	case throttle.Starting:
		o.metrics.shadowWaits.WithLabelValues(string(reason)).Observe(e.Took.Seconds())
		log.WithField("wait_ms", e.Took.Milliseconds()).Infof("pod %s would have waited until now: the mode is Shadow", e.Ticket.Name())
	case throttle.Started, throttle.Gone:
		log.WithFields(logrus.Fields{"start_ms": e.Took.Milliseconds(), "reason": e.Reason}).Debugf("pod %s would have started by now: the mode is Shadow", e.Ticket.Name())
	}
}

// LookAtWaiting writes events on pods that have waited for a while. It returns when to call it again, or zero if no pod
// waits. A panic is caught.
func (o *Observer) LookAtWaiting(now time.Time, s throttle.Snapshot) (next time.Time) {
	defer o.Caught("LookAtWaiting")
	o.pods.inClusterOf(o.nodes())
	return o.pods.look(now, o.events, s)
}

// Forget drops what Waits remembers of a pod. Call it when the pod is gone.
func (o *Observer) Forget(uid string) { o.waits.Delete(uid) }

// Wait is a decision that a start waits.
type Wait struct {
	UID, Name string // of the pod; Name is "namespace/name"
	Decision  throttle.Decision
	Since     time.Time     // when the pod joined the queue
	Message   string        // where the pod waits; follows its name in the log line
	Fields    logrus.Fields // added to the log line; may be nil
}

// Waits logs at the time now that a start waits, for which reason, and at which place. It logs the first decision of
// a wait at the level info, the others at the level debug.
func (o *Observer) Waits(now time.Time, w Wait) {
	d := w.Decision
	log := o.PodLog(w.UID, w.Name).WithFields(w.Fields).WithFields(logrus.Fields{
		"reason": d.Reason, "held": admin.HeldText(d.Held), "place": d.Ahead + 1, "wait_ms": now.Sub(w.Since).Milliseconds(),
	})
	level, since := logrus.DebugLevel, w.Since.UnixNano()
	if before, _ := o.waits.Swap(w.UID, since); before != since {
		level = logrus.InfoLevel
	}
	log.Logf(level, "pod %s %s", w.Name, w.Message)
}
