package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PacemakerConfig says how fast pods may start on the nodes that it selects.
// Of all that select a node, one is in force there: the one with the highest
// priority, and among equals the one whose name comes first.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pmc
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Concurrent",type=integer,JSONPath=`.spec.throttleConfig.maxConcurrent.value`
// +kubebuilder:printcolumn:name="Per core",type=string,JSONPath=`.spec.throttleConfig.maxConcurrent.perCore`
// +kubebuilder:printcolumn:name="One start per",type=string,JSONPath=`.spec.throttleConfig.rateLimit.fillFactor`
// +kubebuilder:printcolumn:name="Burst",type=integer,JSONPath=`.spec.throttleConfig.rateLimit.burst`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PacemakerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the name is required.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for. An empty one selects every node and holds
	// no pod back.
	// +optional
	// +kubebuilder:default={}
	Spec PacemakerConfigSpec `json:"spec,omitempty"`
}

// PacemakerConfigList is a list of PacemakerConfig objects.
//
// +kubebuilder:object:root=true
type PacemakerConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []PacemakerConfig `json:"items"`
}

// PacemakerConfigSpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.startTimeout) || !has(self.settleTime) || !self.startTimeout.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.settleTime.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.startTimeout) < duration('1s') || duration(self.settleTime) < duration(self.startTimeout)",message="must be shorter than startTimeout",fieldPath=".settleTime"
type PacemakerConfigSpec struct {
	// nodeSelector holds the labels that a node must have, each with exactly
	// this value, for this config to concern it. Empty or absent: every node.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a label name, like \"node.kubernetes.io/instance-type\""
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// priority decides between configs that select the same node: the highest
	// wins, and among equals the one whose name comes first. From -1000000 to
	// 1000000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// throttleConfig holds the limits. A start must be allowed by every limit
	// that is set; where none is set, no pod is held back.
	// +optional
	ThrottleConfig ThrottleConfig `json:"throttleConfig,omitempty"`

	// startTimeout is how long a start may hold its slot. A pod that is not
	// ready by then is stuck: it no longer counts. From 1s to 24h, default 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	StartTimeout *Duration `json:"startTimeout,omitempty"`

	// maxWait is how long a pod may wait for its start. A pod that has waited so
	// long is started over the limit, one such pod at a time. From 1s to 24h,
	// default 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	MaxWait *Duration `json:"maxWait,omitempty"`

	// settleTime is how long a pod without readiness or startup probe keeps its
	// slot after all its containers run. From 0s to 1h and shorter than
	// startTimeout, default 5s.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('1h')",message="must be a duration from 0s to 1h in whole h, m, s or ms, like \"5s\""
	SettleTime *Duration `json:"settleTime,omitempty"`

	// exemptions say which pods never wait, beside static pods, pods of
	// DaemonSets and pods of the system-node-critical and
	// system-cluster-critical priority classes, which never do.
	// +optional
	// +kubebuilder:default={}
	Exemptions Exemptions `json:"exemptions,omitempty"`
}

// LabelValue is the value of a label: at most 63 letters, digits, '-', '_' and
// '.', beginning and ending with a letter or digit; it can be empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// ThrottleConfig holds the limits of a node.
type ThrottleConfig struct {
	// maxConcurrent limits how many pods may be starting at a time.
	// +optional
	MaxConcurrent *MaxConcurrent `json:"maxConcurrent,omitempty"`

	// rateLimit limits how many pods may begin to start in a time.
	// +optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
}

// MaxConcurrent limits how many pods may be starting at a time.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) || has(self.perCore)",message="must set value or perCore"
type MaxConcurrent struct {
	// value is the number of pods that may be starting at a time, from 1 to
	// 1000. Where perCore is set too, value wins.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Value *int32 `json:"value,omitempty"`

	// perCore is the number of pods per CPU core of the node that may be
	// starting at a time: a whole number like 2, or a decimal in quotes with at
	// most three places like "0.5", from "0.001" to 100. The product is rounded
	// down, but is never less than 1.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,3}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a number from \"0.001\" to 100 with at most three decimal places, like \"0.5\""
	PerCore *intstr.IntOrString `json:"perCore,omitempty"`
}

// RateLimit limits how many pods may begin to start in a time.
type RateLimit struct {
	// fillFactor is the time in which one start becomes available, like "1s":
	// one start per second. From 1ms to 1h.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be a duration from 1ms to 1h in whole h, m, s or ms, like \"1s\""
	FillFactor Duration `json:"fillFactor"`

	// burst is how many starts that were not used can be saved up, and so how
	// many pods may begin to start at once after a quiet time. From 1 to 1000,
	// default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Burst *int32 `json:"burst,omitempty"`
}

// Exemptions say which pods never wait.
type Exemptions struct {
	// namespaces lists the namespaces whose pods never wait, at most 64. Absent:
	// kube-system. An empty list exempts none.
	// +optional
	// +listType=set
	// +kubebuilder:default={"kube-system"}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitzero"`

	// allowSkipAnnotation lets pods exempt themselves by the annotation
	// pod-pacemaker.io/skip: "true". Default false.
	// +optional
	// +kubebuilder:default=false
	AllowSkipAnnotation bool `json:"allowSkipAnnotation,omitempty"`
}
