package policies

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Set is the policies in force on one node, and the labels of namespaces by which they select. Make the first one with
// New. It never changes: the methods that change something return another Set, and what others need to know about that.
// All but WithPolicies return the same Set and nil if nothing has changed. It is safe for concurrent use.
type Set struct {
	server bool // there is an API server
	mode   v1alpha1.Mode
	states []State                         // in the order in which WithPolicies got them
	limits map[string]throttle.GroupLimits // by the name of the policy
	// The limits are right from since on and before next, on the wall clock: an override began or ended at
	// since, and one will at next, or a fault has lasted long enough to be reported. Each is zero if there is nothing of
	// the kind.
	since, next time.Time
	needs       startpolicy.Needs // what the pod watch extracts

	namespaces      map[string]map[string]string // the labels of those that are known
	namespacesFault string                       // why they are not known; empty if they are
}

// Why the labels of namespaces are not known.
const (
	namespacesUnread  = "the labels of the namespaces are not read yet; if this lasts, the daemon's log says why"
	namespacesUnknown = "the labels of namespaces are not known: there is no API server to ask"
)

// unreadFor is how long the labels of namespaces may be unread before that is reported as the fault of a policy: the watch of
// namespaces begins with the first policy that needs them.
const unreadFor = 30 * time.Second

// New returns a Set without policies. server reports whether there is an API server. Without one, the labels of
// namespaces are not known, and policies of the scope Cluster cannot count starts.
func New(server bool) *Set {
	fault := namespacesUnread
	if !server {
		fault = namespacesUnknown
	}
	return &Set{server: server, mode: v1alpha1.ModeEnforce, namespacesFault: fault}
}

// WithPolicies replaces the policies by those that Compile returned.
func (s *Set) WithPolicies(now time.Time, compiled []State) (*Set, *Changes) {
	next, c := s.change(now, func(next *Set) { next.states = compiled })
	var needs startpolicy.Needs
	for _, one := range compiled {
		needs.Add(one.Policy)
		c.NeedsNamespaces = c.NeedsNamespaces || one.Policy.NeedsNamespaces
	}
	if extracting := len(compiled) > 0; extracting != (len(s.states) > 0) || !s.needs.Covers(needs) {
		next.needs, c.NewFacts = needs, true
		if extracting {
			c.Extract = func(pod *corev1.Pod) startpolicy.Facts { return startpolicy.FactsOf(pod, needs) }
		}
	}
	return next, c
}

// WithNamespaces replaces the labels of the namespaces, by name. labels has all namespaces that exist. It keeps the
// map, which must not be changed afterwards.
func (s *Set) WithNamespaces(now time.Time, labels map[string]map[string]string) (*Set, *Changes) {
	if s.namespacesFault == "" && maps.EqualFunc(s.namespaces, labels, maps.Equal) {
		return s, nil
	}
	return s.change(now, func(next *Set) { next.namespaces, next.namespacesFault = labels, "" })
}

// InMode changes the mode, which is Enforce at first. In the mode Disabled no policy is in force. In Shadow those of the
// scope Cluster limit nothing: a slot that this node claimed would hold pods of the nodes that enforce.
func (s *Set) InMode(now time.Time, mode v1alpha1.Mode) (*Set, *Changes) {
	if s.mode == mode {
		return s, nil
	}
	return s.change(now, func(next *Set) { next.mode = mode })
}

// Advance begins and ends the temporary overrides that are due, and reports faults that have lasted. The wall clock may
// be set, so call it from time to time even if none is due by Next.
func (s *Set) Advance(now time.Time) (*Set, *Changes) {
	if !now.Before(s.since) && (s.next.IsZero() || now.Before(s.next)) {
		return s, nil
	}
	return s.change(now, func(*Set) {})
}

// Next returns when to call Advance: when the next temporary override begins or ends, or a fault is to be reported. It is
// zero if none will.
func (s *Set) Next() time.Time { return s.next }

// State returns the policies in force, in the order in which Compile got them.
func (s *Set) State() []State { return slices.Clone(s.states) }

// Limits returns the limits of the policies that hold pods, by the name of the policy. The map must not be changed.
func (s *Set) Limits() map[string]throttle.GroupLimits { return s.limits }

// Needs returns what the policies need to know of pods. It may be more than the policies in force need.
func (s *Set) Needs() startpolicy.Needs { return s.needs }

// change returns a copy of s that f has changed, with all policies evaluated anew.
func (s *Set) change(now time.Time, f func(next *Set)) (*Set, *Changes) {
	next, c, before := *s, &Changes{Faults: map[string]string{}}, map[string]State{}
	for _, one := range s.states {
		before[one.Object.Name] = one
	}
	f(&next)
	next.states, next.limits = slices.Clone(next.states), map[string]throttle.GroupLimits{}
	next.since, next.next = time.Time{}, time.Time{}
	for i := range next.states {
		one := &next.states[i]
		next.evaluate(now, one)
		next.report(now, one, before[one.Object.Name])
		c.note(before[one.Object.Name], *one)
		delete(before, one.Object.Name)
	}
	for _, gone := range before {
		c.note(gone, State{Object: gone.Object})
	}
	return &next, c
}

// unclaimed is the fault of a policy of the scope Cluster where no slot can be claimed: an object of the
// API server has to own the Leases.
const unclaimed = "the starts of the whole cluster are not counted: that needs an API server, and the policy as an object there"

// evaluate finds what holds pods of a policy now. It is part of change.
func (s *Set) evaluate(now time.Time, one *State) {
	one.Calculated = one.Policy.LimitsAt(now)
	s.wake(one.Calculated.Next)
	if one.Calculated.Since.After(s.since) {
		s.since = one.Calculated.Since
	}
	cluster := one.Object.Spec.GetScope() == v1alpha1.ScopeCluster
	switch {
	case cluster && (!s.server || one.Object.UID == ""):
		one.Fault = unclaimed
	case one.Policy.NeedsNamespaces:
		one.Fault = s.namespacesFault
	}
	if s.mode == v1alpha1.ModeDisabled || one.Fault != "" || cluster && s.mode == v1alpha1.ModeShadow {
		return
	}
	limits := LimitsOf(one.Calculated.Limits)
	if cluster {
		limits = claimsOf(one.Object, one.Calculated.Limits)
	}
	limits.MaxWait = one.Object.Spec.MaxWait.Or(0)
	s.limits[one.Object.Name] = limits
}

// wake makes Next return this time if that is the earliest. Zero is none.
func (s *Set) wake(at time.Time) {
	if !at.IsZero() && (s.next.IsZero() || at.Before(s.next)) {
		s.next = at
	}
}

// report decides whether the fault of a policy is to be reported. before is its last state. It is part of change.
func (s *Set) report(now time.Time, one *State, before State) {
	one.reported, one.unreadSince = one.Fault, time.Time{}
	if one.Fault != namespacesUnread {
		return
	}
	one.unreadSince = before.unreadSince
	if one.unreadSince.IsZero() {
		one.unreadSince = now
	}
	if due := one.unreadSince.Add(unreadFor); now.Before(due) {
		one.reported = before.reported
		s.wake(due)
	}
}

// Pod is what policies need to know of a pod.
type Pod struct {
	// Namespace is the name of its namespace.
	Namespace string
	// Facts are what policies ask of the pod. With the zero value it matches as a pod without labels that
	// requests nothing.
	Facts startpolicy.Facts
}

// Groups returns the groups of a pod.
func (s *Set) Groups(pod Pod) (groups []throttle.Membership) {
	namespace := s.labelsOf(pod.Namespace)
	for _, one := range s.states {
		if one.Fault != "" {
			continue
		}
		if match, ok := one.Policy.Match(pod.Facts, namespace); ok {
			groups = append(groups, throttle.Membership{
				Key:      throttle.GroupKey{Policy: one.Object.Name, Group: match.Group},
				Requests: throttle.Amounts(pod.Facts.Requests), Bypass: match.Bypass,
			})
		}
	}
	return groups
}

// labelsOf returns the labels of a namespace. Where they are not known, that is the one that every API server sets:
// its name.
func (s *Set) labelsOf(name string) map[string]string {
	if labels, known := s.namespaces[name]; known {
		return labels
	}
	return map[string]string{corev1.LabelMetadataName: name}
}
