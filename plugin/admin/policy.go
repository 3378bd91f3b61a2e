package admin

import "github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"

// Policy is a StartPolicy that applies on the node.
type Policy struct {
	Name string `json:"name"`
	// Generation is the generation of the API object; 0 for a file.
	Generation int64 `json:"generation,omitempty"`
	// Scope is Node or Cluster.
	Scope v1alpha1.PolicyScope `json:"scope"`
	// Limits are the current limits, with the overrides.
	Limits v1alpha1.PolicyLimits `json:"limits"`
	// Fault is why the policy holds no pod; absent if it holds pods.
	Fault string `json:"fault,omitempty"`
	// GroupCount is the number of groups that have pods. Groups are the 32 largest of them.
	GroupCount int                    `json:"groupCount"`
	Groups     []v1alpha1.PolicyGroup `json:"groups"`
}
