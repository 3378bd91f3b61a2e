package observe

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
)

// claimMetrics tell Prometheus of the slots of policies of the scope Cluster.
type claimMetrics struct {
	view func() leases.View

	held, wanted, open, requests, conflicts, failures, lost *prometheus.Desc
}

func newClaimMetrics(view func() leases.View) *claimMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "claim", name), help, labels, nil)
	}
	return &claimMetrics{
		view:      view,
		held:      desc("slots_held", "Slots of the policy that this node holds, of all its groups; each is a Lease.", "policy"),
		wanted:    desc("slots_wanted", "How many more slots of the policy this node could use at once.", "policy"),
		open:      desc("open", "1 while the policy holds no pod because the Leases of its slots cannot be used: the API server is away, or the role is missing.", "policy"),
		requests:  desc("requests_total", "Requests for Leases of slots, by what they are for.", "for"),
		conflicts: desc("conflicts_total", "Requests for Leases of slots that came too late, because another node was faster."),
		failures:  desc("failures_total", "Requests for Leases of slots that failed."),
		lost:      desc("slots_lost_total", "Slots that could not be renewed in time, or that were taken away."),
	}
}

// Describe implements prometheus.Collector.
func (m *claimMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.held, m.wanted, m.open, m.requests, m.conflicts, m.failures, m.lost} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *claimMetrics) Collect(to chan<- prometheus.Metric) {
	v := m.view()
	held, wanted := map[string]int{}, map[string]int{}
	for _, g := range v.Groups {
		held[g.Key.Policy] += g.Held
		wanted[g.Key.Policy] += g.Wanted
	}
	for _, policy := range sortedNames(held) {
		to <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(held[policy]), policy)
		to <- prometheus.MustNewConstMetric(m.wanted, prometheus.GaugeValue, float64(wanted[policy]), policy)
		to <- prometheus.MustNewConstMetric(m.open, prometheus.GaugeValue, oneIf(slices.Contains(v.UnheldPolicies, policy)), policy)
	}
	for _, what := range sortedNames(v.Calls) {
		to <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(v.Calls[what]), what)
	}
	for d, n := range map[*prometheus.Desc]uint64{m.conflicts: v.Conflicts, m.failures: v.Failures, m.lost: v.Lost} {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
}
