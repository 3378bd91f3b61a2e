package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// newSignalMetrics tells Prometheus of the node's signals.
func newSignalMetrics(measure func() throttle.Signals, l *throttle.Limiter) prometheus.Collector {
	m := &scrape{subsystem: "signal"}
	value := m.gauge("value", "What a signal is, in percent; load in processes. Absent while it cannot be measured.", "signal")
	threshold := m.gauge("threshold", "The value from which a signal holds starts. Absent where no limit is set.", "signal")
	blind := m.gauge("blind", "1 while a signal cannot be measured: a limit of its own is open then, adaptive does without it.", "signal")
	m.collect = func(put sample) {
		settings := l.Snapshot(time.Now()).Settings
		for i, r := range measure() {
			signal := throttle.Signal(i)
			if limit := settings.Signals[signal].Max; limit > 0 {
				put(threshold, limit, signal.String())
			}
			put(blind, oneIf(r.Err != nil), signal.String())
			if r.Err == nil && !r.To.IsZero() {
				put(value, r.Value, signal.String())
			}
		}
	}
	return m
}
