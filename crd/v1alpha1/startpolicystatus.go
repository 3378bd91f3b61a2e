package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StartPolicyStatus sums up what the nodes report on which the policy is in force.
// The daemons take turns to write it, at most every 20 seconds.
type StartPolicyStatus struct {
	// observedGeneration is the generation of the policy that this is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is on how many nodes the policy is in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// waiting is how many pods wait that the policy is for, whatever holds them, in the groups
	// that used has.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// calculatedLimits are those in force now, with the overrides.
	// +optional
	CalculatedLimits *CalculatedLimits `json:"calculatedLimits,omitempty"`

	// used is what counts against the limits, of all nodes together. Of each node it has the
	// groups with the most pods: 32 of a policy, and 64 of all policies.
	// +optional
	Used PolicyUse `json:"used,omitzero"`

	// throttled names the limits by which a pod is held, or the next would be, in any
	// group on any node: starting.pods, running.requests.cpu, pacer and the like.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=340
	Throttled []string `json:"throttled,omitempty"`

	// groups are the groups with the most pods, at most 32; groupCount is how many
	// the nodes told of.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +kubebuilder:validation:MaxItems=32
	Groups []PolicyGroup `json:"groups,omitempty"`

	// groupCount is how many groups have pods, as far as the nodes told.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GroupCount int32 `json:"groupCount,omitempty"`

	// invalidOverrides are the overrides that are left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	InvalidOverrides []InvalidField `json:"invalidOverrides,omitempty"`

	// conditions are Ready and OverridesValid.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady reports whether the policy's newest generation is in force on every node that
// it is for.
const ConditionReady = "Ready"

// ConditionOverridesValid reports whether none of the policy's overrides is left out.
const ConditionOverridesValid = "OverridesValid"

// CalculatedLimits are limits that were calculated.
type CalculatedLimits struct {
	PolicyLimits `json:",inline"`

	// since is when they began to be in force by themselves, because an override
	// began or ended; absent: none did, since the policy was changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// PolicyUse is what counts against the limits of a group.
type PolicyUse struct {
	// starting is what is starting.
	// +optional
	Starting PodUse `json:"starting,omitzero"`

	// running is what was admitted and has not finished.
	// +optional
	Running PodUse `json:"running,omitzero"`

	// ready is how many pods are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
}

// PodUse is how many pods there are and what they request together.
type PodUse struct {
	// pods is how many there are.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// requests is what they request together, of each resource that the policy bounds.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Requests map[string]UsedQuantity `json:"requests,omitempty"`
}

// UsedQuantity is an amount of a resource that is used.
//
// +kubebuilder:validation:MaxLength=32
type UsedQuantity string

// PolicyGroup is one group of a policy.
type PolicyGroup struct {
	// group is the value that the pods of the group have in common, in short; empty
	// where the policy has one group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// waiting is how many pods of the group wait, whatever holds them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// used is what counts against the limits.
	// +optional
	Used PolicyUse `json:"used,omitzero"`

	// throttled names the limits by which a pod is held, or the next would be.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=340
	Throttled []string `json:"throttled,omitempty"`
}

// InvalidField is a field whose value is of no use.
type InvalidField struct {
	// path is that of the field.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Path string `json:"path"`

	// message says why.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message"`
}
