package observe

import "github.com/prometheus/client_golang/prometheus"

// scrape is a collector whose metrics are read at each scrape, because no event changes them.
type scrape struct {
	observer  *Observer
	subsystem string // second part of the names; may be empty
	descs     []*prometheus.Desc
	collect   func(put sample)
}

// metric is one metric of a scrape.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// sample adds a value of a metric to the scrape.
type sample func(m metric, value float64, labels ...string)

func (s *scrape) gauge(name, help string, labels ...string) metric {
	return s.add(prometheus.GaugeValue, name, help, labels)
}

func (s *scrape) counter(name, help string, labels ...string) metric {
	return s.add(prometheus.CounterValue, name, help, labels)
}

func (s *scrape) add(kind prometheus.ValueType, name, help string, labels []string) metric {
	desc := prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, s.subsystem, name), help, labels, nil)
	s.descs = append(s.descs, desc)
	return metric{desc, kind}
}

// Describe implements prometheus.Collector.
func (s *scrape) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector. A panic ends only what follows it: the other metrics are still served.
func (s *scrape) Collect(to chan<- prometheus.Metric) {
	defer s.observer.Caught("metrics")
	s.collect(func(m metric, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	})
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
