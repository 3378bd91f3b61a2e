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

// Observer reports what the daemon does. Make it with New. Its methods are safe for concurrent use
// and do not block, but for LookAtWaiting, which only one goroutine may call.
type Observer struct {
	Panics
	metrics *metrics
	events  Events
	pods    *podEvents
	nodes   func() int
	waits   sync.Map // by UID, of the pods of which it was logged that they wait: since when, in nanoseconds
}

// Options say where an Observer reports to. All are needed.
type Options struct {
	Log    logrus.FieldLogger
	Events Events
	Nodes  func() int // of the cluster; 0: not known
}

// New returns an Observer with a registry of its own.
func New(o Options) *Observer {
	m := newMetrics()
	return &Observer{Panics: Panics{log: o.Log, count: m.panics}, metrics: m, events: o.Events, pods: newPodEvents(), nodes: o.Nodes}
}

// Registry returns the metrics of the Observer; collectors may be added to it.
func (o *Observer) Registry() *prometheus.Registry { return o.metrics.registry }

// Handler takes note of a call of an NRI handler, and how long that took.
func (o *Observer) Handler(name string, took time.Duration) {
	o.metrics.handlers.WithLabelValues(name).Observe(took.Seconds())
}

// Held takes note of the time that an NRI handler waited on purpose.
func (o *Observer) Held(d time.Duration) { o.metrics.held.Add(d.Seconds()) }

// Reasons why a process left the waiting room, beside those of the answers.
const (
	// HungUp: it ended by itself, for the folder of the CNI configurations changed or the runtime gave it up.
	HungUp reasons.Reason = "HungUp"
)

// LeftRoom takes note of a process that waits in the waiting room no longer: why, and how long it did.
func (o *Observer) LeftRoom(reason reasons.Reason, waited time.Duration) {
	o.metrics.roomWaits.WithLabelValues(string(reason)).Observe(waited.Seconds())
}

// Refused takes note of a refusal at a point, sandbox or container, and what it is taken to cost.
func (o *Observer) Refused(at string, reason reasons.Reason, cpu time.Duration) {
	o.metrics.refusals.WithLabelValues(at, string(reason)).Inc()
	o.metrics.refusalCPU.Add(cpu.Seconds())
}

// Learned reports what the start of a pod took, beside what it was expected to take when it began, and what that
// rested on. One that was killed is logged alone: it would have taken more.
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

// Configured takes note of the configuration that is in force.
func (o *Observer) Configured(name, origin string, generation int64) {
	o.metrics.generation.Reset()
	o.metrics.generation.WithLabelValues(name, origin).Set(float64(generation))
}

// Sources are asked at each scrape for what no event reports.
type Sources struct {
	Limiter           *throttle.Limiter
	Signals           func() throttle.Signals // may block for 250 ms
	Policies          func() []policies.State
	Claims            func() leases.View
	Connected         func() error // why pods are not paced; nil: they are
	RegistrationWaits func() bool  // the daemon waits to register, because a container is being stopped
	GateWaiters       func() int   // hooks that wait in the gate
	Room              func() admin.Room
	LogDropped        func() uint64 // entries that the log lost; nil: it loses none
	Version           string
}

// Collect adds the metrics of these sources to the registry. To be called once.
func (o *Observer) Collect(s Sources) {
	o.metrics.registry.MustRegister(newStateMetrics(s), newSignalMetrics(s.Signals, s.Limiter), newPolicyMetrics(s.Policies, s.Limiter), newClaimMetrics(s.Claims))
}

// Node writes an event on the node; kind is Normal or Warning, reason one word.
func (o *Observer) Node(kind, reason, message string) { o.events.Node(kind, reason, message) }

// Happened reports what happened to a ticket. container is the ID of the pod's container that was
// made last, or empty; off says that the mode is Off, in which admissions are unpaced starts.
// A panic is caught.
func (o *Observer) Happened(e throttle.Event, container string, off bool) {
	defer o.Caught("tell")
	o.metrics.observe(e)
	o.logEvent(e, container)
	o.pods.happened(o.events, e)
	if e.State == throttle.Starting && e.Reason == reasons.WithinLimits && off {
		o.CountUnpaced(Off)
	}
}

// HappenedInShadow reports what would have happened to a start that went on at once, which waited
// for a reason. It is no event of the pod, for nothing happened to that.
func (o *Observer) HappenedInShadow(e throttle.Event, reason reasons.Reason) {
	defer o.Caught("tell")
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

// LookAtWaiting writes events on pods that wait, and returns the time at which to look again; zero:
// no pod waits. A panic is caught.
func (o *Observer) LookAtWaiting(now time.Time, l *throttle.Limiter) (next time.Time) {
	defer o.Caught("tellWaiting")
	o.pods.inClusterOf(o.nodes())
	return o.pods.look(now, o.events, l)
}

// Forget drops what is kept of a pod that is gone.
func (o *Observer) Forget(uid string) { o.waits.Delete(uid) }

// Wait is a decision that a start waits.
type Wait struct {
	UID, Name string // of the pod; Name is "namespace/name"
	Decision  throttle.Decision
	Since     time.Time // when the pod joined the queue
	Message   string    // what becomes of the pod
	Fields    logrus.Fields
}

// Waits logs that a start waits, where, and behind how many: at the level info the first time for each
// wait, and at the level debug after that.
func (o *Observer) Waits(now time.Time, w Wait) {
	d := w.Decision
	log := o.PodLog(w.UID, w.Name).WithFields(w.Fields).WithFields(logrus.Fields{
		"reason": d.Reason, "held": admin.HeldText(d.Held), "queue_position": d.Ahead + 1, "wait_ms": now.Sub(w.Since).Milliseconds(),
	})
	since := w.Since.UnixNano()
	if before, _ := o.waits.Swap(w.UID, since); before != since {
		log.Infof("pod %s %s", w.Name, w.Message)
		return
	}
	log.Debugf("pod %s %s", w.Name, w.Message)
}
