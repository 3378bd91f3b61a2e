// Package v1alpha1 holds the API types of pod-pacemaker.io/v1alpha1.
//
// A PacemakerConfig sets how fast pods start on the nodes that it selects. A StartPolicy limits
// how many pods of a group start or run at a time. A PacemakerNode is the report of the daemon on
// one node.
//
// The markers of the types are the rules of the custom resource definitions. Package rules reads
// them from there, and knows only a part of CEL: a test fails for the rest. Code should read an optional field through its
// accessor method, which applies the default.
//
// Several goroutines may read a value of these types at the same time. To change one, change a
// DeepCopy.
//
// +kubebuilder:object:generate=true
// +groupName=pod-pacemaker.io
package v1alpha1
