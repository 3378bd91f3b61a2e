// Package v1alpha1 holds the API types of pod-pacemaker.io/v1alpha1.
//
// A PacemakerConfig says how fast pods may start on the nodes whose labels it
// selects, a StartPolicy how many pods of a group may start or run at a time. The types carry the rules of the custom resource definition as
// markers; package crd checks the same rules without an API server. Optional
// fields that are absent have a default, which the accessor methods apply: they
// are what code should read instead of the fields.
//
// Values of these types may be read by several goroutines at once, and are
// changed by none: take a DeepCopy to change one.
//
// +kubebuilder:object:generate=true
// +groupName=pod-pacemaker.io
package v1alpha1
