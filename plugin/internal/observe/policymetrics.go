package observe

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// otherGroups stands for the groups of a policy that are not told one by one.
const otherGroups = "(others)"

// What stands beside the resources in the label of that name. No pod can request a
// resource that is called so.
const (
	podsAsResource  = "pods"
	pacerAsResource = "pacer"
)

// policyMetrics tell Prometheus what the groups of policies use. The number of series
// has a bound: of each policy the groups with the most pods have their own, all
// others are told together.
type policyMetrics struct {
	states  func() []policies.State
	limiter Limiter

	used, limit, throttled, waiting, ready, groups, fault *prometheus.Desc
}

func newPolicyMetrics(states func() []policies.State, l Limiter) *policyMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(metricsNamespace, "policy", name), help, labels, nil)
	}
	return &policyMetrics{
		states: states, limiter: l,
		used:      desc("used", "What counts against a limit of a StartPolicy: pods, cores, bytes, or the unit of the resource. limit is starting or running.", "policy", "group", "limit", "resource"),
		limit:     desc("limit", "The limit of a StartPolicy for each group, with the overrides of now, in the same units; of the scope Cluster for all nodes together.", "policy", "limit", "resource"),
		throttled: desc("throttled", "1 while the limit is reached, so that it holds every pod that needs more. resource is pods, pacer, or a resource.", "policy", "group", "limit", "resource"),
		waiting:   desc("waiting", "Pods of the group that wait, whatever holds them.", "policy", "group"),
		ready:     desc("ready", "Pods of the group that are ready.", "policy", "group"),
		groups:    desc("groups", "Groups that have pods; the 32 with the most pods have series of their own, the others together as (others).", "policy"),
		fault:     desc("fault", "1 while the policy holds no pod: it cannot be evaluated, or, with the scope Cluster, pod_pacemaker_claim_open is 1, too.", "policy"),
	}
}

// Describe implements prometheus.Collector.
func (m *policyMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.used, m.limit, m.throttled, m.waiting, m.ready, m.groups, m.fault} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *policyMetrics) Collect(to chan<- prometheus.Metric) {
	views := m.limiter.Groups(time.Now())
	states := m.states()
	for _, s := range states[:min(len(states), mostPolicies)] {
		name, groups := s.Object.Name, groupsOf(views, s.Object.Name)
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		gauge(m.fault, oneIf(s.Fault != ""))
		gauge(m.groups, float64(len(groups)))
		limits := policies.LimitsOf(s.Calculated.Limits, "")
		m.collectLimits(gauge, "starting", limits.Starting)
		m.collectLimits(gauge, "running", limits.Running)
		for _, v := range together(groups) {
			group := v.Key.Group
			gauge(m.waiting, float64(v.Waiting), group)
			gauge(m.ready, float64(v.Ready), group)
			m.collectUse(gauge, v, "starting", limits.Starting, v.Starting)
			m.collectUse(gauge, v, "running", limits.Running, v.Running)
			if limits.Pacer.MaxStagger > 0 {
				gauge(m.throttled, oneIf(v.reached["pacer"]), group, "starting", pacerAsResource)
			}
		}
	}
}

// gaugeOf writes one sample of a policy.
type gaugeOf func(d *prometheus.Desc, value float64, labels ...string)

func (m *policyMetrics) collectLimits(gauge gaugeOf, limit string, b throttle.Bound) {
	if b.Pods != nil {
		gauge(m.limit, float64(*b.Pods), limit, podsAsResource)
	}
	for _, resource := range resourcesOf(b) {
		gauge(m.limit, float64(b.Requests[resource])/1000, limit, resource)
	}
}

// collectUse tells of pods always, and of the resources that are bounded.
func (m *policyMetrics) collectUse(gauge gaugeOf, g policyGroup, limit string, b throttle.Bound, u throttle.Usage) {
	group := g.Key.Group
	gauge(m.used, float64(u.Pods), group, limit, podsAsResource)
	if b.Pods != nil {
		gauge(m.throttled, oneIf(g.reached[limit+".pods"]), group, limit, podsAsResource)
	}
	for _, resource := range resourcesOf(b) {
		gauge(m.used, float64(u.Requests[resource])/1000, group, limit, resource)
		gauge(m.throttled, oneIf(g.reached[limit+".requests."+resource]), group, limit, resource)
	}
}

// resourcesOf returns the resources that are bounded, sorted.
func resourcesOf(b throttle.Bound) []string {
	return slices.DeleteFunc(sortedNames(b.Requests), func(name string) bool {
		return name == podsAsResource || name == pacerAsResource
	})
}

// together returns the groups with the most pods, and all others as one; also one that
// users called as these are called.
func together(groups []policyGroup) []policyGroup {
	if len(groups) <= mostGroupsTold {
		return groups
	}
	if i := slices.IndexFunc(groups[:mostGroupsTold], func(v policyGroup) bool { return v.Key.Group == otherGroups }); i >= 0 {
		groups = append(slices.Delete(slices.Clone(groups), i, i+1), groups[i])
	}
	others := policyGroup{reached: map[string]bool{}}
	others.Key = throttle.GroupKey{Policy: groups[0].Key.Policy, Group: otherGroups}
	for _, v := range groups[mostGroupsTold:] {
		others.Waiting += v.Waiting
		others.Ready += v.Ready
		others.Starting, others.Running = addUsage(others.Starting, v.Starting), addUsage(others.Running, v.Running)
		maps.Copy(others.reached, v.reached)
	}
	return append(groups[:mostGroupsTold:mostGroupsTold], others)
}

func addUsage(a, b throttle.Usage) throttle.Usage {
	sum := throttle.Usage{Pods: a.Pods + b.Pods, Requests: throttle.Amounts{}}
	for _, part := range []throttle.Usage{a, b} {
		for resource, amount := range part.Requests {
			sum.Requests[resource] += amount
		}
	}
	return sum
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
