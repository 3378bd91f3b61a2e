package v1alpha1

import (
	"strings"
	"time"
)

// StartAfter names pods of the node for which others wait: those of a DaemonSet, or those that
// a selector selects in a namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.daemonSet) != has(self.podSelector) && has(self.__namespace__) == has(self.podSelector)",message="must have either daemonSet, or namespace and podSelector",reason=FieldValueRequired
type StartAfter struct {
	// daemonSet is the namespace and the name of a DaemonSet, like kube-system/cilium. It holds
	// no pod if it does not exist, or if none of its pods is on the node.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && self.size() - self.indexOf('/') <= 254",message="must be the namespace and the name of a DaemonSet, like \"kube-system/cilium\""
	DaemonSet string `json:"daemonSet,omitempty"`

	// namespace is the namespace of the pods that podSelector selects.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower case letters, digits and '-', the first and the last a letter or a digit"
	Namespace string `json:"namespace,omitempty"`

	// podSelector selects pods by their labels. Others wait until one of them is ready. It holds
	// no pod if none of them is on the node.
	// +optional
	// +kubebuilder:example={matchLabels:{app:"web"}}
	PodSelector *LabelSelector `json:"podSelector,omitempty"`

	// timeout is how long pods wait at most, counted from when the node, the daemon or this
	// entry is new, whichever is last. From 1s to 1h, default 2m.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be a duration from 1s to 1h in whole h, m, s or ms, like \"2m\""
	Timeout *Duration `json:"timeout,omitempty"`

	// again makes pods wait again, for at most timeout each time, when none of the pods is ready
	// any more. With false, they wait until one was ready once since the node booted, or since
	// its Node object was made if that is later. Default false.
	// +optional
	Again bool `json:"again,omitempty"`
}

// DefaultStartAfterTimeout is how long pods wait for an entry of startAfter at most.
const DefaultStartAfterTimeout = 2 * time.Minute

// GetTimeout returns how long pods wait for the entry at most.
func (a StartAfter) GetTimeout() time.Duration { return a.Timeout.Or(DefaultStartAfterTimeout) }

// Pods returns the namespace of the pods of the entry, and the name of their DaemonSet, or "" if the entry has a
// selector.
func (a StartAfter) Pods() (namespace, daemonSet string) {
	if a.PodSelector != nil {
		return a.Namespace, ""
	}
	namespace, daemonSet, _ = strings.Cut(a.DaemonSet, "/")
	return namespace, daemonSet
}

// String returns what the entry waits for: "kube-system/cilium", or "vault (app=agent)" with a selector.
func (a StartAfter) String() string {
	if a.PodSelector != nil {
		return a.Namespace + " (" + a.PodSelector.Selector().String() + ")"
	}
	return a.DaemonSet
}

// SureToStart reports whether the exemptions alone say that the pods of the entry never wait. If not, they may wait for
// themselves.
func (a StartAfter) SureToStart(exempt Exemptions) bool {
	namespace, daemonSet := a.Pods()
	return exempt.ExemptsNamespace(namespace) || daemonSet != "" && exempt.DaemonSets.Has(namespace)
}
