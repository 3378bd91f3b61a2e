package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// signalMetrics tell Prometheus of the node's signals at the moment of the scrape.
type signalMetrics struct {
	measure                 func() throttle.Signals
	limiter                 Limiter
	value, threshold, blind *prometheus.Desc
}

func newSignalMetrics(measure func() throttle.Signals, l Limiter) *signalMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("pod_pacemaker", "signal", name), help, []string{"signal"}, nil)
	}
	return &signalMetrics{
		measure: measure, limiter: l,
		value:     desc("value", "What a signal is, in percent; load in processes. Absent while it cannot be measured."),
		threshold: desc("threshold", "The value from which a signal holds starts. Absent where no limit is set."),
		blind:     desc("blind", "1 while a signal cannot be measured: a limit of its own is open then, adaptive does without it."),
	}
}

// Describe implements prometheus.Collector.
func (m *signalMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.value, m.threshold, m.blind} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *signalMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, signal throttle.Signal) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, signal.String())
	}
	settings := m.limiter.Snapshot(time.Now()).Settings
	for i, r := range m.measure() {
		signal := throttle.Signal(i)
		if limit := settings.Signals[signal].Max; limit > 0 {
			gauge(m.threshold, limit, signal)
		}
		if r.Err != nil {
			gauge(m.blind, 1, signal)
			continue
		}
		gauge(m.blind, 0, signal)
		if !r.To.IsZero() {
			gauge(m.value, r.Value, signal)
		}
	}
}
