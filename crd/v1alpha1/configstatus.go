package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacemakerConfigStatus sums up the reports of the nodes on which a config is in force. One
// daemon at a time writes it, at most every 20 seconds, and only if it changes. A config that
// no daemon follows has none.
type PacemakerConfigStatus struct {
	// observedGeneration is the generation of the config that this status describes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nodes is the number of nodes on which the config is in force, in any generation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Nodes int32 `json:"nodes"`

	// updatedNodes is the number of those on which observedGeneration is in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedNodes int32 `json:"updatedNodes"`

	// reportingNodes is the number of nodes whose daemons report, whichever config is in force
	// there.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReportingNodes int32 `json:"reportingNodes"`

	// conditions holds the conditions Accepted and Conflicting.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The conditions of a PacemakerConfig.
const (
	// ConditionAccepted is true if the newest generation is valid. Otherwise the last valid one
	// stays in force.
	ConditionAccepted = "Accepted"
	// ConditionConflicting is true if another config of equal priority selects a node, too.
	ConditionConflicting = "Conflicting"
)
