package policies

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
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

	suspended bool
	states    []State                         // in the order in which SetPolicies got them
	limits    map[string]throttle.GroupLimits // that the limiter has
	// The limits are right from since on and before next, on the wall clock: an override began or ended at
	// since, and one will at next. Zero: none.
	since, next time.Time
	extracting  bool                   // the pod watch extracts facts
	needs       startpolicy.Needs      // what it extracts
	pods        map[string]*groupedPod // by UID

	namespaces      map[string]map[string]string // the labels of those that are known
	namespacesFault string                       // why not all are known; empty: they are
}

// New returns a Matcher without policies. server reports whether there is an API server. Without one, the labels of
// namespaces are not known, and policies of the scope Cluster cannot count starts.
func New(limiter Limiter, server bool) *Matcher {
	fault := namespacesUnread
	if !server {
		fault = namespacesUnknown
	}
	return &Matcher{
		limiter: limiter, server: server, pods: map[string]*groupedPod{},
		namespaces: map[string]map[string]string{}, namespacesFault: fault,
	}
}

// SetPolicies replaces the policies in force by those that Compile returned. It keeps the slice.
func (m *Matcher) SetPolicies(now time.Time, compiled []State) *Changes {
	c := m.update(now, compiled)
	var needs startpolicy.Needs
	for _, s := range compiled {
		needs.Add(s.Policy)
		c.NeedsNamespaces = c.NeedsNamespaces || s.Policy.NeedsNamespaces
	}
	if extracting := len(compiled) > 0; extracting != m.extracting || !m.needs.Covers(needs) {
		m.extracting, m.needs, c.NewFacts = extracting, needs, true
		if extracting {
			c.Extract = func(pod *corev1.Pod) startpolicy.Facts { return startpolicy.FactsOf(pod, needs) }
		}
	}
	return c
}

// State returns the policies in force, in the order in which Compile got them.
func (m *Matcher) State() []State { return slices.Clone(m.states) }

// Suspend takes all policies out of force, as the mode Off does, or puts them back.
func (m *Matcher) Suspend(now time.Time, suspended bool) (c *Changes) {
	if m.suspended != suspended {
		m.suspended = suspended
		c = m.update(now, m.states)
	}
	return c
}

// Advance begins and ends the temporary overrides that are due, and returns when the next one is; zero: none
// is before the policies change. The wall clock may be set, so call it from time to time as well.
func (m *Matcher) Advance(now time.Time) (next time.Time, c *Changes) {
	if now.Before(m.since) || !m.next.IsZero() && !now.Before(m.next) {
		c = m.update(now, m.states)
	}
	return m.next, c
}

// Needs returns what the policies need to know of pods. It may be more than the policies in force need.
func (m *Matcher) Needs() startpolicy.Needs { return m.needs }

// update evaluates policies anew and puts them in force. It passes their limits, and the groups that changed, to the
// limiter.
func (m *Matcher) update(now time.Time, states []State) *Changes {
	before := map[string]State{}
	for _, s := range m.states {
		before[s.Object.Name] = s
	}
	c := &Changes{Faults: map[string]string{}}
	m.states, m.since, m.next, m.limits = states, time.Time{}, time.Time{}, map[string]throttle.GroupLimits{}
	for i := range states {
		s := &states[i]
		m.evaluate(now, s)
		c.note(before[s.Object.Name], *s)
		delete(before, s.Object.Name)
	}
	for _, gone := range before {
		c.note(gone, State{Object: gone.Object})
	}
	m.limiter.SetPolicies(now, m.limits, m.regroup()...)
	return c
}

// unclaimed is the fault of a policy of the scope Cluster where no slot can be claimed: an object of the
// API server has to own the Leases.
const unclaimed = "the starts of the whole cluster are not counted: that needs an API server, and the policy as an object there"

// evaluate finds what holds pods of a policy now.
func (m *Matcher) evaluate(now time.Time, s *State) {
	s.Calculated = s.Policy.LimitsAt(now)
	if next := s.Calculated.Next; !next.IsZero() && (m.next.IsZero() || next.Before(m.next)) {
		m.next = next
	}
	if s.Calculated.Since.After(m.since) {
		m.since = s.Calculated.Since
	}
	cluster := s.Object.Spec.GetScope() == v1alpha1.ScopeCluster
	switch {
	case cluster && (!m.server || s.Object.UID == ""):
		s.Fault = unclaimed
	case s.Policy.NeedsNamespaces:
		s.Fault = m.namespacesFault
	}
	if m.suspended || s.Fault != "" {
		return
	}
	limits := LimitsOf(s.Calculated.Limits)
	if cluster {
		limits = claimsOf(s.Object, s.Calculated.Limits)
	}
	m.limits[s.Object.Name] = limits
}
