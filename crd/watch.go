package crd

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// watchConfigs prepares the watch of all PacemakerConfigs.
func (s *Source) watchConfigs() (informer.Informer, error) {
	lw := listWatch(s.configs.Resource(v1alpha1.Resource))
	observe := func(obj any) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			s.observe(u)
		}
	}
	return s.prepare("PacemakerConfigs", lw, s.configs, &unstructured.Unstructured{}, trimConfig, cache.ResourceEventHandlerFuncs{
		AddFunc:    observe,
		UpdateFunc: func(_, obj any) { observe(obj) },
		DeleteFunc: func(obj any) {
			// The key of a cluster-wide object is its name, also of one whose
			// deletion was missed.
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				s.forget(name)
			}
		},
	})
}

// watchNode prepares the watch of this node's labels, its shutdown and its pressure. When
// the Node object goes, the last labels stay: the node is still there to read this.
func (s *Source) watchNode() (informer.Informer, error) {
	api := s.nodes.Nodes()
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, s.node).String()
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return api.Watch(ctx, o)
		},
	}
	relabel := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok && node.Name == s.node {
			s.relabel(node)
			s.noteShutdown(node)
			s.notePressure(node)
		}
	}
	return s.prepare("this node", lw, s.nodes, &corev1.Node{}, trimNode, cache.ResourceEventHandlerFuncs{
		AddFunc:    relabel,
		UpdateFunc: func(_, obj any) { relabel(obj) },
	})
}

// relabel takes the labels of this node.
func (s *Source) relabel(node *corev1.Node) {
	labels := node.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	s.setLabels(labels, node.UID)
	s.wake()
	if s.onLabels != nil {
		s.onLabels()
	}
}

// labelsNow gives the labels of this node, and the UID of its Node object.
func (s *Source) labelsNow() (map[string]string, types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.labels, s.nodeUID
}

func (s *Source) setLabels(labels map[string]string, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.labels, s.nodeUID = labels, uid
}

// listWatch lists and watches all objects of one kind.
func listWatch(api dynamic.ResourceInterface) cache.ListWatch {
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: api.Watch,
	}
}

// prepare makes an informer that starts nothing yet. client is what lw asks.
func (s *Source) prepare(what string, lw cache.ListWatch, client any, kind runtime.Object,
	trim cache.TransformFunc, handler cache.ResourceEventHandler,
) (informer.Informer, error) {
	return informer.New(&informer.Reach{What: what, Log: s.log, Refused: s.refused}, lw, client, kind, trim, handler)
}

// trimConfig drops the metadata that takes more memory than the config.
func trimConfig(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		u.SetAnnotations(nil)
	}
	return obj, nil
}

// trimNode drops all of a Node but its name, version, labels, readiness and pressure.
func trimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			},
			Status: corev1.NodeStatus{Conditions: append(readyCondition(node), pressures(node)...)},
		}, nil
	}
	return obj, nil
}
