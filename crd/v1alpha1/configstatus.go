package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types of the conditions of a PacemakerConfig.
const (
	// ConditionReady: its newest generation is in force on every node that it is for,
	// and all of them pace pods.
	ConditionReady = "Ready"
	// ConditionConflict: another config of the same priority selects a node too, and
	// only their names decide which one is in force there.
	ConditionConflict = "Conflict"
)

// PacemakerConfigStatus sums up what the nodes report on which the config is in
// force. One daemon writes it for all of them, at most every 30 seconds.
type PacemakerConfigStatus struct {
	// observedGeneration is the generation of the config that this is about.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is on how many nodes the config is in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// readyNodes is how many of them pace pods as it says.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyNodes int32 `json:"readyNodes"`

	// waiting is how many pods wait on these nodes for their start.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// starting is how many pods on these nodes hold a slot.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Starting int32 `json:"starting"`

	// conditions are Ready and Conflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
