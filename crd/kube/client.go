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
	"k8s.io/client-go/gentype"
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

// Access returns how to reach the API server: by the kubeconfig at this path or, if the path is empty, by the service
// account of the pod. It sends no request. userAgent names the program to the API server.
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

// New returns a client and sends no request. All its requests share the rate limit of config.
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

func (c client) Pods(namespace string) Follow {
	return of[corev1.Pod, corev1.PodList](c.core, "pods", namespace)
}

func (c client) Nodes() Nodes { return of[corev1.Node, corev1.NodeList](c.core, "nodes", "") }

func (c client) Namespaces() Follow {
	return of[corev1.Namespace, corev1.NamespaceList](c.core, "namespaces", "")
}

func (c client) Events(namespace string) Events {
	return of[corev1.Event, corev1.EventList](c.core, "events", namespace)
}

func (c client) DaemonSets(namespace string) DaemonSets {
	return of[appsv1.DaemonSet, appsv1.DaemonSetList](c.apps, "daemonsets", namespace)
}

func (c client) Leases(namespace string) Leases {
	return of[coordinationv1.Lease, coordinationv1.LeaseList](c.coordination, "leases", namespace)
}

// of returns the client of one kind, T, whose lists are L.
func of[T, L any, O object[T], OL interface {
	*L
	runtime.Object
}](api rest.Interface, resource, namespace string) kind[T, O, OL] {
	return kind[T, O, OL]{gentype.NewClientWithList[O, OL](resource, api, parameters, namespace, func() O { return new(T) }, func() OL { return new(L) }), resource}
}

// Review creates a review, such as a TokenReview or a SubjectAccessReview, and returns its status. group and kind are
// the API group and the kind of the review, whose version is v1. It blocks until the API server has answered or ctx
// ends.
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
