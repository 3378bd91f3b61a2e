package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

	schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, &PacemakerConfig{}, &PacemakerConfigList{}, &PacemakerNode{}, &PacemakerNodeList{},
			&StartPolicy{}, &StartPolicyList{})
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})

	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)
