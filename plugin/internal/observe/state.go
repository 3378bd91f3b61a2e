package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stateMetrics tell Prometheus what the limiter holds at the moment of the
// scrape: what changes with time alone, no event tells of.
type stateMetrics struct {
	limiter                                    Limiter
	slots, lent, pulling, longestWait, maxWait *prometheus.Desc
}

func newStateMetrics(l Limiter) *stateMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "", name), help, nil, nil)
	}
	return &stateMetrics{
		limiter:     l,
		slots:       desc("slots", "Starts allowed at a time, without those lent; 0: any number."),
		lent:        desc("slots_lent", "Slots lent beyond the limit, because no start that holds one makes progress."),
		pulling:     desc("pulling", "Pods between their sandbox and their first container."),
		longestWait: desc("longest_wait_seconds", "How long the pod that waits longest has waited; 0: none waits."),
		maxWait:     desc("max_wait_seconds", "How long a pod waits at most, by the configuration in force."),
	}
}

// Describe implements prometheus.Collector.
func (m *stateMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.slots, m.lent, m.pulling, m.longestWait, m.maxWait} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *stateMetrics) Collect(to chan<- prometheus.Metric) {
	now := time.Now()
	s := m.limiter.Snapshot(now)
	var longest time.Duration
	for _, t := range s.Waiting {
		longest = max(longest, now.Sub(t.Arrived))
	}
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	gauge(m.slots, float64(s.Limit))
	gauge(m.lent, float64(s.Lent))
	gauge(m.pulling, float64(s.Pulling))
	gauge(m.longestWait, longest.Seconds())
	gauge(m.maxWait, s.Settings.MaxWait.Seconds())
}

// newBuildInfo is always 1; its label tells which version runs where.
func newBuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "build_info", Help: "Always 1, by the version of the program.",
	}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	return info
}

// newConnected reports whether pods are paced, by what tells it.
func newConnected(state func() error) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "connected", Help: "1 while the runtime is connected and synchronized.",
	}, func() float64 {
		if state() != nil {
			return 0
		}
		return 1
	})
}

// newRegistrationWaits reports whether the daemon waits to register, see stopWait.
func newRegistrationWaits(waits func() bool) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "registration_waits",
		Help: "1 while the daemon waits to register with the runtime, because a container of the node is being stopped; pods start unpaced.",
	}, func() float64 {
		if waits() {
			return 1
		}
		return 0
	})
}

// newLogDropped counts what the log lost; nil: it loses nothing.
func newLogDropped(dropped func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "log_dropped_total",
		Help: "Log entries that were dropped, because stderr or journald did not take them in time.",
	}, func() float64 {
		if dropped == nil {
			return 0
		}
		return float64(dropped())
	})
}

// newRoomWaiters tells how many pods wait in the waiting room.
func newRoomWaiters(room func() (waiters, emptied int)) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metricsNamespace, Name: "room_waiters", Help: "Pods that wait in the waiting room.",
	}, func() float64 { waiters, _ := room(); return float64(waiters) })
}

// newRoomEmptied counts how often the waiting room emptied itself.
func newRoomEmptied(room func() (waiters, emptied int)) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Namespace: metricsNamespace, Name: "room_emptied_total",
		Help: "How often the folder of the CNI configurations changed, upon which all pods leave the waiting room.",
	}, func() float64 { _, emptied := room(); return float64(emptied) })
}
