package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// The kinds of objects.
const (
	Kind       = "PacemakerConfig"
	NodeKind   = "PacemakerNode"
	PolicyKind = "StartPolicy"
)

var (
	// GroupVersion is the API group and version of every type in this package.
	GroupVersion = schema.GroupVersion{Group: "pod-pacemaker.io", Version: "v1alpha1"}

	// Resource is where the API server serves PacemakerConfig objects.
	Resource = GroupVersion.WithResource("pacemakerconfigs")

	// NodeResource is where it serves PacemakerNode objects.
	NodeResource = GroupVersion.WithResource("pacemakernodes")

	// PolicyResource is where it serves StartPolicy objects.
	PolicyResource = GroupVersion.WithResource("startpolicies")
)
