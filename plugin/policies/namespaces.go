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
func (k *Matcher) SetNamespace(now time.Time, name string, labels map[string]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, isKnown := k.namespaces.labels[name]
	if isKnown == (labels != nil) && maps.Equal(known, labels) {
		return
	}
	if labels == nil {
		delete(k.namespaces.labels, name)
	} else {
		k.namespaces.labels[name] = maps.Clone(labels)
	}
	if k.namespaces.fault != "" {
		return
	}
	if changed := k.regroupLocked(); len(changed) > 0 {
		k.options.Limiter.SetPolicies(now, k.limits, changed...)
	}
}

// SetNamespacesKnown says that all namespaces were told, or, with a fault, why they
// cannot be.
func (k *Matcher) SetNamespacesKnown(now time.Time, fault string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.namespaces.fault == fault {
		return
	}
	before := maps.Clone(k.faults)
	k.namespaces.fault = fault
	k.judgeLocked()
	k.limitLocked(now)
	k.sayFaultsLocked(before)
}

// askForNamespacesLocked has the namespaces watched once a policy needs their labels.
// k.mu must be held.
func (k *Matcher) askForNamespacesLocked() {
	for _, policy := range k.policies {
		if !policy.NeedsNamespaces || k.namespaces.asked {
			continue
		}
		k.namespaces.asked = true
		k.namespaces.fault = namespacesUnread
		if k.options.WatchNamespaces == nil {
			k.namespaces.fault = namespacesUnknown
			continue
		}
		k.options.WatchNamespaces()
	}
	k.judgeLocked()
}

// judgeLocked finds the policies that were read and cannot be evaluated. k.mu must be
// held.
func (k *Matcher) judgeLocked() {
	for _, policy := range k.policies {
		delete(k.faults, policy.Name)
		switch {
		case policy.Scope == v1alpha1.ScopeCluster && !k.claimableLocked(policy.Name):
			k.faults[policy.Name] = unclaimed
		case policy.NeedsNamespaces && k.namespaces.fault != "":
			k.faults[policy.Name] = k.namespaces.fault
		}
	}
}
