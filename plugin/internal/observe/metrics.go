package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// metricsNamespace is the prefix of every metric.
const metricsNamespace = "pod_pacemaker"

// metrics are the metrics that the Observer updates when something happens; the collectors of this package read the
// others at each scrape. deploy/metrics.md lists all metrics; TestEveryMetricIsDocumented says how to update it.
type metrics struct {
	registry *prometheus.Registry

	waits       *prometheus.HistogramVec
	admissions  *prometheus.CounterVec
	shadowWaits *prometheus.HistogramVec // of starts that did not wait, because the mode is Shadow
	starts      *prometheus.HistogramVec
	refusals    *prometheus.CounterVec
	unpaced     *prometheus.CounterVec
	panics      *prometheus.CounterVec
	expired     prometheus.Counter
	refusalCPU  prometheus.Counter
	handlerHold prometheus.Counter
	duringStop  prometheus.Counter
	large       prometheus.Counter
	roomWaits   *prometheus.HistogramVec
	generation  *prometheus.GaugeVec
	handlers    *prometheus.HistogramVec
	// CPU time that starts took and were expected to take, by the basis of the estimate.
	startCPU, expectedCPU *prometheus.CounterVec
	costRatio             *prometheus.HistogramVec
}

// secondsBuckets cover starts that do not wait and the longest waits.
var secondsBuckets = []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

// ratioBuckets cover estimates from ten times too high to ten times too low.
var ratioBuckets = []float64{0.1, 0.2, 0.5, 0.8, 0.9, 1.1, 1.25, 2, 5, 10}

// handlerBuckets cover decisions of microseconds and the runtime's request timeout.
var handlerBuckets = []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(registry)
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Namespace: metricsNamespace, Name: name, Help: help}
	}
	histogram := func(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
		return add.NewHistogramVec(prometheus.HistogramOpts{Namespace: metricsNamespace, Name: name, Help: help, Buckets: buckets}, []string{label})
	}
	m := &metrics{
		registry:    registry,
		waits:       histogram("wait_seconds", "Time from joining the queue to the admission, by the reason of the admission.", secondsBuckets, "reason"),
		admissions:  add.NewCounterVec(counter("admissions_total", "Admitted starts. MaxWait: over the limit. SlotLent: into a lent slot. Adopted: under way when the daemon learned of it. LastResort: the limiter admitted nothing for too long. ByHand: pod-pacemaker admit."), []string{"reason"}),
		shadowWaits: histogram("shadow_wait_seconds", "Time that a start would have waited in the mode Enforce, by the reason. It did not wait, because the mode is Shadow.", secondsBuckets, "reason"),
		starts:      histogram("start_seconds", "Time from the admission to the end of the start, by the reason of the end. Of starts that were Adopted, only those that end Stuck.", secondsBuckets, "reason"),
		refusals:    add.NewCounterVec(counter("refusals_total", "Refused sandboxes and containers, which kubelet tries again."), []string{"at", "reason"}),
		unpaced:     add.NewCounterVec(counter("unpaced_total", "Starts that were not paced. Adopted: under way when the daemon synchronized, whether or not an earlier daemon paced them. Shadow and Disabled: the mode asks for that."), []string{"reason"}),
		panics:      add.NewCounterVec(counter("panics_total", "Panics that were caught. After one in an NRI handler the pod starts; any other part continues."), []string{"part"}),
		expired:     add.NewCounter(counter("gate_expired_total", "Waits in the gate that ended without a turn. Each costs the pod a RunContainerError, a restart in its status and a back-off.")),
		refusalCPU:  add.NewCounter(counter("refusal_cpu_seconds_total", "Estimated CPU time that refusals cost the node.")),
		duringStop:  add.NewCounter(counter("registrations_during_stop_total", "Registrations with the runtime while it was stopping a container, because containers were being stopped for a minute without a pause. All pods of the node wait for the end of that stop.")),
		large:       add.NewCounter(counter("large_environments_total", "Sandboxes and containers that were made with more than 256 KiB of environment and other settings, or refused for that.")),
		handlerHold: add.NewCounter(counter("handler_hold_seconds_total", "Time that NRI handlers waited while the runtime's locks were held.")),
		roomWaits:   histogram("room_wait_seconds", "Time that a process waited in the waiting room, by the reason why it left. TurnNear: its pod may wait in the gate next. HungUp: it ended by itself, because the folder of the CNI configurations changed or the runtime ended it.", secondsBuckets, "reason"),
		generation:  add.NewGaugeVec(prometheus.GaugeOpts{Namespace: metricsNamespace, Name: "config_generation", Help: "Generation of the PacemakerConfig in force."}, []string{"config", "origin"}),
		startCPU:    add.NewCounterVec(counter("start_cpu_seconds_total", "CPU time that starts took until they were ready, by what their estimate rested on: Owner, Image, Revisions, Namespace or None."), []string{"basis"}),
		expectedCPU: add.NewCounterVec(counter("start_expected_cpu_seconds_total", "CPU time that these starts were expected to take, when they began; 0 with the basis None."), []string{"basis"}),
		costRatio:   histogram("start_cost_ratio", "CPU time that a start took, divided by the CPU time that it was expected to take.", ratioBuckets, "basis"),
		handlers:    histogram("handler_seconds", "Time spent in an NRI handler, holds included; the runtime's locks are held meanwhile.", handlerBuckets, "handler"),
	}
	m.begin()
	return m
}

// begin begins the series that alerts and the figures of the dashboard look at. A series that begins with its first
// event shows no increase by it.
func (m *metrics) begin() {
	m.unpaced.WithLabelValues(string(NotAsked))
	m.unpaced.WithLabelValues(string(Panic))
	m.admissions.WithLabelValues(string(reasons.MaxWait))
	m.admissions.WithLabelValues(string(reasons.LastResort))
	m.starts.WithLabelValues(string(reasons.Stuck))
}
