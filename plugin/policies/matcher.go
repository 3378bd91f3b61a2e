package policies

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Limiter is the part of [throttle.Limiter] that a Matcher calls.
type Limiter interface {
	SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups)
	SetGroups(now time.Time, pod throttle.PodGroups)
	Finished(now time.Time, uid string)
}

// Matcher knows the groups of each pod and keeps the limiter up to date about them. Make it with New.
//
// It has no lock, because its owner changes a pod's groups and its ticket in one step. It is not safe
// for concurrent use. It calls nothing but the limiter: what others need to know is in the Changes
// that its methods return.
type Matcher struct {
	limiter Limiter
	server  bool // there is an API server

	suspended  bool
	set        Compiled
	faults     map[string]string // why a policy holds no pod, by name
	calculated map[string]startpolicy.Calculated
	limits     map[string]throttle.GroupLimits // that the limiter has
	claims     map[string]leases.Policy
	// The limits are right from since on and before next, on the wall clock: an override began or ended at
	// since, and one will at next. Zero: none.
	since, next time.Time
	extracting  bool              // the pod watch extracts facts
	needs       startpolicy.Needs // what it extracts
	namespaces  namespaces
	pods        map[string]*member // by UID
}

// New returns a Matcher without policies. server reports whether there is an API server: without one,
// nobody knows the labels of namespaces, and policies of the scope Cluster cannot count starts.
func New(limiter Limiter, server bool) *Matcher {
	n := namespaces{labels: map[string]map[string]string{}, fault: namespacesUnread}
	if !server {
		n.fault = namespacesUnknown
	}
	return &Matcher{limiter: limiter, server: server, namespaces: n, pods: map[string]*member{}}
}

// Changes are what others need to know of a change of the policies. Methods return nil where nothing changed.
type Changes struct {
	// Faults are why policies hold no pod, by name, where that is new.
	Faults map[string]string
	// Evaluated are the policies that had a fault and have none now, or are gone.
	Evaluated []string
	// Overridden are the policies of which a temporary override began or ended.
	Overridden []string
	// NeedsNamespaces is true where a policy needs the labels of namespaces.
	NeedsNamespaces bool
	// NewFacts is true where the pod watch has to extract other facts from now on: those that Extract
	// returns, or none where that is nil. Extract is safe for concurrent use.
	NewFacts bool
	Extract  func(*corev1.Pod) startpolicy.Facts
}

// SetPolicies replaces the policies in force.
func (m *Matcher) SetPolicies(now time.Time, set Compiled) *Changes {
	m.set = set
	c := m.update(now)
	var needs startpolicy.Needs
	for _, policy := range set.policies {
		needs.Add(policy)
		c.NeedsNamespaces = c.NeedsNamespaces || policy.NeedsNamespaces
	}
	if extracting := len(set.policies) > 0; extracting != m.extracting || !m.needs.Covers(needs) {
		m.extracting, m.needs, c.NewFacts = extracting, needs, true
		if extracting {
			c.Extract = func(pod *corev1.Pod) startpolicy.Facts { return startpolicy.FactsOf(pod, needs) }
		}
	}
	return c
}

// Suspend takes all policies out of force, as the mode Off does, or puts them back.
func (m *Matcher) Suspend(now time.Time, suspended bool) (c *Changes) {
	if m.suspended != suspended {
		m.suspended = suspended
		c = m.update(now)
	}
	return c
}

// Advance begins and ends the temporary overrides that are due, and returns when the next one is; zero: none
// is before the policies change. The wall clock may be set, so call it from time to time as well.
func (m *Matcher) Advance(now time.Time) (next time.Time, c *Changes) {
	if now.Before(m.since) || !m.next.IsZero() && !now.Before(m.next) {
		c = m.update(now)
	}
	return m.next, c
}

// Needs returns what the policies need to know of pods. It may be more than the policies in force need.
func (m *Matcher) Needs() startpolicy.Needs { return m.needs }

// Claims returns the policies of the scope Cluster that are in force, by name. The map must not be changed.
func (m *Matcher) Claims() map[string]leases.Policy { return m.claims }

// update evaluates the policies anew, and passes their limits and the groups that changed to the limiter.
func (m *Matcher) update(now time.Time) *Changes {
	c := &Changes{}
	c.Faults, c.Evaluated = m.findFaults()
	before := m.calculated
	m.since, m.next = time.Time{}, time.Time{}
	m.calculated, m.claims, m.limits = map[string]startpolicy.Calculated{}, map[string]leases.Policy{}, map[string]throttle.GroupLimits{}
	for _, policy := range m.set.policies {
		now := policy.LimitsAt(now)
		m.calculated[policy.Name] = now
		if !now.Next.IsZero() && (m.next.IsZero() || now.Next.Before(m.next)) {
			m.next = now.Next
		}
		if now.Since.After(m.since) {
			m.since = now.Since
		}
		if b, known := before[policy.Name]; known && !b.Since.Equal(now.Since) {
			c.Overridden = append(c.Overridden, policy.Name)
		}
		if m.suspended || m.faults[policy.Name] != "" {
			continue
		}
		m.limits[policy.Name] = LimitsOf(now.Limits, policy.Scope)
		if policy.Scope == v1alpha1.ScopeCluster {
			m.claims[policy.Name] = claimOf(policy, now.Limits)
		}
	}
	m.limiter.SetPolicies(now, m.limits, m.regroup()...)
	return c
}

// unclaimed is the fault of a policy of the scope Cluster where no slot can be claimed: an object of the
// API server has to own the Leases.
const unclaimed = "the starts of the whole cluster are not counted: that needs an API server, and the policy as an object there"

// findFaults finds the policies that hold no pod, and returns what is new.
func (m *Matcher) findFaults() (added map[string]string, evaluated []string) {
	before := m.faults
	m.faults, added = maps.Clone(m.set.faults), map[string]string{}
	for _, policy := range m.set.policies {
		switch {
		case policy.Scope == v1alpha1.ScopeCluster && (!m.server || policy.UID == ""):
			m.faults[policy.Name] = unclaimed
		case policy.NeedsNamespaces && m.namespaces.fault != "":
			m.faults[policy.Name] = m.namespaces.fault
		}
	}
	for name, fault := range m.faults {
		if fault != before[name] {
			added[name] = fault
		}
	}
	for name := range before {
		if m.faults[name] == "" {
			evaluated = append(evaluated, name)
		}
	}
	return added, evaluated
}
