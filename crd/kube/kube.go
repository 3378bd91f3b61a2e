// Package kube is a client for the few kinds of Kubernetes' own objects that the daemon reads and writes. client-go's
// clientset knows every kind, which would take half of the daemon's memory.
package kube

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Interface is a client. Its methods send no request. The methods of what they return block until the API server has
// answered or ctx ends, and are safe for concurrent use. An empty namespace stands for all namespaces.
type Interface interface {
	Pods(namespace string) Follow
	Nodes() Nodes
	Namespaces() Follow
	Events(namespace string) Events
	DaemonSets(namespace string) DaemonSets
	Leases(namespace string) Leases
}

// Get reads one object.
type Get[T any] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
}

// Follow reads the objects of a kind.
type Follow interface {
	// Each calls f for each object, and returns the version of the list. f has been called for some of the objects if
	// Each returns an error.
	Each(ctx context.Context, opts metav1.ListOptions, f func(runtime.Object)) (version string, err error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// List lists the objects of a kind. L is the type of the list.
type List[L any] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
}

// Patch changes an object.
type Patch[T any] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// Nodes reads and changes the Nodes of the cluster.
type Nodes interface {
	Get[*corev1.Node]
	Follow
	Patch[*corev1.Node]
}

// DaemonSets reads and deletes the DaemonSets of one namespace.
type DaemonSets interface {
	Get[*appsv1.DaemonSet]
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}

// Events writes Events of one namespace.
type Events interface {
	Patch[*corev1.Event]
	Create(ctx context.Context, event *corev1.Event, opts metav1.CreateOptions) (*corev1.Event, error)
	Update(ctx context.Context, event *corev1.Event, opts metav1.UpdateOptions) (*corev1.Event, error)
}

// Leases reads and writes the Leases of one namespace.
type Leases interface {
	Get[*coordinationv1.Lease]
	List[*coordinationv1.LeaseList]
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
}
