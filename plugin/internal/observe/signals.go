package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// newSignalMetrics returns metrics of the node's signals.
func newSignalMetrics(measure func() throttle.Signals, l *throttle.Limiter) prometheus.Collector {
	m := &scrape{subsystem: "signal"}
	value := m.gauge("value", "Value of a signal, in percent; load in processes. Absent while it cannot be measured.", "signal")
	threshold := m.gauge("threshold", "The value from which a signal holds starts. Absent where no limit is set.", "signal")
	blind := m.gauge("blind", "1 while a signal cannot be measured: its limit holds no start then, and adaptive works without it.", "signal")
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
