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
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// watched is an informer and the handler that gets its events.
type watched struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandlerRegistration
}

// watchConfigs prepares the watch of all PacemakerConfigs.
func (s *Source) watchConfigs() (watched, error) {
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

// watchNode prepares the watch of this node's labels, and of its shutdown. When the Node object goes,
// the last labels stay: the node is still there to read this.
func (s *Source) watchNode() (watched, error) {
	api := s.nodes.CoreV1().Nodes()
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

// prepare makes an informer that starts nothing yet. client is what lw asks.
func (s *Source) prepare(what string, lw cache.ListWatch, client any, kind runtime.Object,
	trim cache.TransformFunc, handler cache.ResourceEventHandler,
) (w watched, err error) {
	return prepareWith(&reach{what: what, log: s.log, refused: s.refused}, lw, client, kind, trim, handler)
}

// prepareWith makes an informer that notes in reach how it goes.
func prepareWith(reach *reach, lw cache.ListWatch, client any, kind runtime.Object,
	trim cache.TransformFunc, handler cache.ResourceEventHandler,
) (w watched, err error) {
	w.informer = cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(reach.observed(lw), client), kind, 0, cache.Indexers{})
	if err := w.informer.SetTransform(trim); err != nil {
		return w, err
	}
	// reach has logged the error, once, where client-go would at every try.
	if err := w.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return w, err
	}
	w.handler, err = w.informer.AddEventHandler(handler)
	return w, err
}

// trimConfig drops the metadata that takes more memory than the config.
func trimConfig(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		u.SetAnnotations(nil)
	}
	return obj, nil
}

// trimNode drops all of a Node but its name, version, labels and readiness.
func trimNode(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			},
			Status: corev1.NodeStatus{Conditions: readyCondition(node)},
		}, nil
	}
	return obj, nil
}
