package policies

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Why the labels of namespaces are not known.
const (
	namespacesUnread  = "the labels of the namespaces are not read yet; if this lasts, the daemon's log says why"
	namespacesUnknown = "the labels of namespaces are not known: there is no API server to ask"
)

// labelsOf returns the labels of a namespace. Where they are not known, that is the one that every API server sets:
// its name.
func (m *Matcher) labelsOf(name string) map[string]string {
	if labels, known := m.namespaces[name]; known {
		return labels
	}
	return map[string]string{corev1.LabelMetadataName: name}
}

// SetNamespace sets the labels of a namespace; nil: it is gone. It does nothing where they have not changed.
func (m *Matcher) SetNamespace(now time.Time, name string, labels map[string]string) {
	known, isKnown := m.namespaces[name]
	if isKnown == (labels != nil) && maps.Equal(known, labels) {
		return
	}
	if labels == nil {
		delete(m.namespaces, name)
	} else {
		m.namespaces[name] = maps.Clone(labels)
	}
	if m.namespacesFault != "" {
		return
	}
	if changed := m.regroup(); len(changed) > 0 {
		m.limiter.SetPolicies(now, m.limits, changed...)
	}
}

// SetNamespacesKnown notes that SetNamespace was called for all namespaces.
func (m *Matcher) SetNamespacesKnown(now time.Time) *Changes {
	m.namespacesFault = ""
	return m.update(now, m.states)
}
