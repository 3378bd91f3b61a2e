package kube

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// Scheme knows the kinds of this package. It must not be changed.
var Scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Pod{}, &corev1.PodList{}, &corev1.Node{}, &corev1.NodeList{},
		&corev1.Namespace{}, &corev1.NamespaceList{}, &corev1.Event{}, &corev1.EventList{})
	s.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.DaemonSet{})
	s.AddKnownTypes(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion} {
		metav1.AddToGroupVersion(s, gv)
	}
	return s
}

var (
	parameters = runtime.NewParameterCodec(Scheme)
	codecs     = serializer.NewCodecFactory(Scheme).WithoutConversion()
)

// Access returns how to reach the API server: as the kubeconfig says or, where its path is empty, by the service
// account of the pod. It asks nothing. userAgent names the program to the API server.
func Access(kubeconfig, userAgent string) (access *rest.Config, err error) {
	if kubeconfig == "" {
		access, err = rest.InClusterConfig()
	} else {
		access, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("access to the API server: %w", err)
	}
	access.UserAgent = userAgent
	return access, nil
}

// client is an Interface over HTTP.
type client struct{ core, apps, coordination rest.Interface }

// New makes a client; it asks nothing yet. All its requests share the rate of config.
func New(config *rest.Config) (Interface, error) {
	config = rest.CopyConfig(config)
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	var c client
	for _, group := range []struct {
		version schema.GroupVersion
		path    string
		into    *rest.Interface
	}{
		{corev1.SchemeGroupVersion, "/api", &c.core},
		{appsv1.SchemeGroupVersion, "/apis", &c.apps},
		{coordinationv1.SchemeGroupVersion, "/apis", &c.coordination},
	} {
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath, own.NegotiatedSerializer = &group.version, group.path, codecs
		if *group.into, err = rest.RESTClientForConfigAndClient(own, transport); err != nil {
			return nil, fmt.Errorf("client of the API server: %w", err)
		}
	}
	return c, nil
}

// RateLimiters returns what bounds the requests for each group of kinds.
func (c client) RateLimiters() []flowcontrol.RateLimiter {
	return []flowcontrol.RateLimiter{c.core.GetRateLimiter(), c.apps.GetRateLimiter(), c.coordination.GetRateLimiter()}
}

func (c client) Pods(namespace string) Pods {
	return resource[*corev1.Pod, *corev1.PodList]{c.core, "pods", namespace,
		func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} }}
}

func (c client) Nodes() Nodes {
	return resource[*corev1.Node, *corev1.NodeList]{c.core, "nodes", "",
		func() *corev1.Node { return &corev1.Node{} }, func() *corev1.NodeList { return &corev1.NodeList{} }}
}

func (c client) Namespaces() Namespaces {
	return resource[*corev1.Namespace, *corev1.NamespaceList]{c.core, "namespaces", "",
		func() *corev1.Namespace { return &corev1.Namespace{} }, func() *corev1.NamespaceList { return &corev1.NamespaceList{} }}
}

func (c client) Events(namespace string) Events {
	return resource[*corev1.Event, *corev1.EventList]{c.core, "events", namespace,
		func() *corev1.Event { return &corev1.Event{} }, func() *corev1.EventList { return &corev1.EventList{} }}
}

func (c client) DaemonSets(namespace string) DaemonSets {
	return resource[*appsv1.DaemonSet, *appsv1.DaemonSetList]{c.apps, "daemonsets", namespace,
		func() *appsv1.DaemonSet { return &appsv1.DaemonSet{} }, func() *appsv1.DaemonSetList { return &appsv1.DaemonSetList{} }}
}

func (c client) Leases(namespace string) Leases {
	return resource[*coordinationv1.Lease, *coordinationv1.LeaseList]{c.coordination, "leases", namespace,
		func() *coordinationv1.Lease { return &coordinationv1.Lease{} }, func() *coordinationv1.LeaseList { return &coordinationv1.LeaseList{} }}
}

// Review has the API server review something, as TokenReview and SubjectAccessReview do, and returns the status of
// the review. group and kind are the kind's, of version v1.
func Review(ctx context.Context, client dynamic.Interface, group, kind string, spec map[string]any) (map[string]any, error) {
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}
	review, err := client.Resource(resource).Create(ctx, &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": group + "/v1", "kind": kind, "spec": spec},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(review.Object, "status")
	return status, err
}
