package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Observer reports what the daemon does: see Report. It keeps the daemon alive when a part of it panics: see Caught,
// CaughtPod and Supervised. Make it with New. Its methods do not block, except Supervised. They are safe for concurrent
// use, except LookAtWaiting and what Report excepts: only one goroutine may do these.
type Observer struct {
	log     logrus.FieldLogger
	metrics *metrics
	events  EventWriter
	pods    *podEvents
	nodes   func() int
	node    *eventBudget // of the events on the node
	// unreadable is set once it is logged that the daemon may not read what a pod uses.
	unreadable atomic.Bool
	waits      sync.Map // when each pod began to wait whose wait was logged, in Unix nanoseconds, by UID
}

// Options configure an Observer. All fields are required.
type Options struct {
	Log    logrus.FieldLogger
	Events EventWriter
	Nodes  func() int // returns the number of nodes of the cluster, at least 1; a guess that is not too low while it is not known
}

// New returns an Observer that has reported nothing.
func New(o Options) *Observer {
	return &Observer{log: o.Log, metrics: newMetrics(), events: o.Events, pods: newPodEvents(), nodes: o.Nodes, node: newEventBudget()}
}

// Registry returns the registry of the metrics that follow from what is reported.
func (o *Observer) Registry() *prometheus.Registry { return o.metrics.registry }

// Scraped is what is read at each scrape.
type Scraped struct {
	Groups     func(now time.Time) []throttle.GroupView
	Status     func() admin.Status // may block for 250 ms
	Policies   func() []policies.State
	Claims     func() leases.View // of policies with the scope Cluster
	Standby    func() bool        // reports whether another daemon paces the pods of the node
	Delay      func() string      // returns why the daemon does not register yet, or "" if nothing delays it
	Delays     []string           // all that Delay returns
	LogDropped func() uint64      // returns how many log entries were dropped; nil if none is dropped
}

// WithScraped returns a registry of all metrics: the metrics of Registry, and the metrics that are read from s at each
// scrape.
func (o *Observer) WithScraped(s Scraped) *prometheus.Registry {
	all := prometheus.NewRegistry()
	all.MustRegister(o.Registry())
	for _, metrics := range []*scrape{newStateMetrics(s), newPolicyMetrics(s.Policies, s.Groups), newClaimMetrics(s.Claims)} {
		metrics.observer = o
		all.MustRegister(metrics)
	}
	return all
}

// LookAtWaiting writes events on pods that have waited for a while. It returns when to call it again even if nothing
// changes, or zero. A panic is caught.
func (o *Observer) LookAtWaiting(now time.Time, s throttle.Snapshot) (next time.Time) {
	defer o.Caught("LookAtWaiting")
	o.pods.inClusterOf(o.nodes())
	return o.pods.look(now, o.events, s)
}

// onNode writes an event on the node, later where other nodes may write the same one, and not at all if that exceeds the
// budget. What goes wrong, like the end of the runtime or of the API server, often does so on all nodes at once, and the log
// has it in any case.
func (o *Observer) onNode(kind, reason, message string) {
	delay := o.node.inClusterOf(o.nodes())
	if !o.node.allow(time.Now()) {
		return
	}
	write := func() {
		defer o.Caught("onNode")
		o.events.Node(kind, reason, message)
	}
	if delay == 0 {
		write()
	} else {
		time.AfterFunc(delay, write)
	}
}

// Forget drops what is remembered of the Waits of a pod. Call it when the pod is gone.
func (o *Observer) Forget(uid string) { o.waits.Delete(uid) }
