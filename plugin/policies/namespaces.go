package policies

import (
	"maps"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// namespaces are the labels of the namespaces, as far as they are known.
type namespaces struct {
	asked  bool // they are watched, or were asked to be
	fault  string
	labels map[string]map[string]string
}

// Why the labels of namespaces are not known.
const (
	namespacesUnread  = "the labels of the namespaces are not read yet"
	namespacesUnknown = "the labels of namespaces are not known: there is no API server to ask"
)

// of returns the labels of a namespace: its name at least, by which every API server
// labels it.
func (n *namespaces) of(name string) map[string]string {
	if labels, known := n.labels[name]; known {
		return labels
	}
	return map[string]string{startpolicy.NamespaceName: name}
}

// SetNamespace sets the labels of a namespace; nil: it is gone. Where they are as
// they were, no pod is looked at.
func (m *Matcher) SetNamespace(now time.Time, name string, labels map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, isKnown := m.namespaces.labels[name]
	if isKnown == (labels != nil) && maps.Equal(known, labels) {
		return
	}
	if labels == nil {
		delete(m.namespaces.labels, name)
	} else {
		m.namespaces.labels[name] = maps.Clone(labels)
	}
	if m.namespaces.fault != "" {
		return
	}
	if changed := m.regroupLocked(); len(changed) > 0 {
		m.options.Limiter.SetPolicies(now, m.limits, changed...)
	}
}

// SetNamespacesKnown says that all namespaces were told, or, with a fault, why they
// cannot be.
func (m *Matcher) SetNamespacesKnown(now time.Time, fault string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.namespaces.fault == fault {
		return
	}
	before := maps.Clone(m.faults)
	m.namespaces.fault = fault
	m.judgeLocked()
	m.limitLocked(now)
	m.sayFaultsLocked(before)
}

// askForNamespacesLocked has the namespaces watched once a policy needs their labels.
// m.mu must be held.
func (m *Matcher) askForNamespacesLocked() {
	for _, policy := range m.policies {
		if !policy.NeedsNamespaces || m.namespaces.asked {
			continue
		}
		m.namespaces.asked = true
		m.namespaces.fault = namespacesUnread
		if m.options.WatchNamespaces == nil {
			m.namespaces.fault = namespacesUnknown
			continue
		}
		m.options.WatchNamespaces()
	}
	m.judgeLocked()
}

// judgeLocked finds the policies that were read and cannot be evaluated. m.mu must be
// held.
func (m *Matcher) judgeLocked() {
	for _, policy := range m.policies {
		delete(m.faults, policy.Name)
		switch {
		case policy.Scope == v1alpha1.ScopeCluster && !m.claimable(policy):
			m.faults[policy.Name] = unclaimed
		case policy.NeedsNamespaces && m.namespaces.fault != "":
			m.faults[policy.Name] = m.namespaces.fault
		}
	}
}
