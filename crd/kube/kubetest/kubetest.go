// Package kubetest lets tests use client-go's clientsets, also the fake one, as a [kube.Interface].
package kubetest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/watchlist"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

type clientset struct{ set kubernetes.Interface }

type nodes struct{ typed.NodeInterface }

func (n nodes) Each(ctx context.Context, opts metav1.ListOptions, f func(runtime.Object)) (version string, err error) {
	return kube.Whole(n.NodeInterface).Each(ctx, opts, f)
}

// Of returns a clientset as a kube.Interface.
func Of(set kubernetes.Interface) kube.Interface { return clientset{set} }

func (c clientset) Pods(namespace string) kube.Follow {
	return kube.Whole(c.set.CoreV1().Pods(namespace))
}
func (c clientset) Nodes() kube.Nodes { return nodes{c.set.CoreV1().Nodes()} }
func (c clientset) Namespaces() kube.Follow {
	return kube.Whole(c.set.CoreV1().Namespaces())
}
func (c clientset) Events(namespace string) kube.Events { return c.set.CoreV1().Events(namespace) }
func (c clientset) DaemonSets(namespace string) kube.DaemonSets {
	return c.set.AppsV1().DaemonSets(namespace)
}
func (c clientset) Leases(namespace string) kube.Leases {
	return c.set.CoordinationV1().Leases(namespace)
}

// IsWatchListSemanticsUnSupported makes client-go list instead of stream if the clientset is a fake.
func (c clientset) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.set)
}
