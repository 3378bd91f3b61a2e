package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StartPolicyStatus sums up the reports of the nodes on which a policy is in force. One
// daemon at a time writes it, at most every 20 seconds.
type StartPolicyStatus struct {
	// observedGeneration is the generation of the policy that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is the number of nodes on which the policy is in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// waiting is the number of waiting pods that the policy selects, whatever holds them, in
	// the groups that used counts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// calculatedLimits are the limits that are in force now, with the overrides.
	// +optional
	CalculatedLimits *PolicyLimits `json:"calculatedLimits,omitempty"`

	// used is what counts against the limits, on all nodes together. Each node reports the
	// groups with the most pods: 32 of a policy, and 64 of all policies.
	// +optional
	Used PolicyUse `json:"used,omitzero"`

	// throttled names the limits that hold a pod, or would hold the next one, in any group on
	// any node, such as starting.pods, running.requests.cpu or pacer.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=340
	Throttled []string `json:"throttled,omitempty"`

	// groups are the groups with the most pods, at most 32. groupCount is the number of groups
	// that the nodes reported.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +kubebuilder:validation:MaxItems=32
	Groups []PolicyGroup `json:"groups,omitempty"`

	// groupCount is the number of groups that have pods, as far as the nodes reported them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GroupCount int32 `json:"groupCount,omitempty"`

	// conditions holds the condition Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionReady is true when the newest generation of the policy is in force on every
// node that it selects.
const ConditionReady = "Ready"

// PolicyUse is what counts against the limits of a group.
type PolicyUse struct {
	// starting counts the pods that are starting.
	// +optional
	Starting PodUse `json:"starting,omitzero"`

	// running counts the pods that were admitted and have not finished.
	// +optional
	Running PodUse `json:"running,omitzero"`

	// ready is the number of pods that are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
}

// PodUse is a number of pods and the sum of their requests.
type PodUse struct {
	// pods is the number of pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`

	// requests is what the pods request together of each resource that the policy limits.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Requests map[string]UsedQuantity `json:"requests,omitempty"`
}

// UsedQuantity is the amount of a resource that is in use.
//
// +kubebuilder:validation:MaxLength=32
type UsedQuantity string

// PolicyGroup is one group of a policy.
type PolicyGroup struct {
	// group is the value that the pods of the group have in common, shortened if it is long.
	// Empty: the policy has one group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// waiting is the number of waiting pods of the group, whatever holds them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// used is what counts against the limits.
	// +optional
	Used PolicyUse `json:"used,omitzero"`

	// throttled names the limits that hold a pod of the group, or would hold the next one.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=340
	Throttled []string `json:"throttled,omitempty"`
}
