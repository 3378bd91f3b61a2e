package policies

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Namespaces watches the namespaces for a Keeper, from the moment that one of its
// policies needs their labels. Make one with NewNamespaces, and give its Need to the
// Keeper.
type Namespaces struct {
	client kube.Interface
	log    logrus.FieldLogger
	needed chan struct{}
}

// NewNamespaces makes a watch that asks nothing before it is needed. The client needs
// the right to list and watch namespaces then.
func NewNamespaces(client kube.Interface, log logrus.FieldLogger) *Namespaces {
	return &Namespaces{client: client, log: log, needed: make(chan struct{}, 1)}
}

// Need has Run begin to watch. It does not block.
func (n *Namespaces) Need() {
	select {
	case n.needed <- struct{}{}:
	default:
	}
}

// Run watches for the Keeper, once needed, until ctx ends, then returns nil. It is to be called
// once. An API server that cannot be reached, or refuses, is no reason to return: the
// Keeper is told what is wrong, and Run keeps trying.
func (n *Namespaces) Run(ctx context.Context, k *Keeper) error {
	select {
	case <-n.needed:
	case <-ctx.Done():
		return nil
	}
	informer, err := n.informer(k)
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tellOf(k, obj) },
		UpdateFunc: func(_, obj any) { tellOf(k, obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				k.SetNamespace(time.Now(), name, nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() {
		cancel() // where the rest panics
		<-done
	}()
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		k.SetNamespacesKnown(time.Now(), "")
	}
	<-done
	return nil
}

func tellOf(k *Keeper, obj any) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		labels := namespace.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		k.SetNamespace(time.Now(), namespace.Name, labels)
	}
}

// informer keeps of a namespace no more than its labels. Before the first list, the
// Keeper is told why there is none; after it, what was known stays.
func (n *Namespaces) informer(k *Keeper) (cache.SharedIndexInformer, error) {
	api := n.client.Namespaces()
	var failing atomic.Bool // as far as was logged
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, o)
			if err == nil && failing.Swap(false) {
				n.log.Info("watching namespaces again")
			}
			return w, err
		},
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(informer.Endable(&lw), n.client), &corev1.Namespace{}, 0, cache.Indexers{})
	trim := func(obj any) (any, error) {
		if namespace, ok := obj.(*corev1.Namespace); ok {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
			}}, nil
		}
		return obj, nil
	}
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	return informer, informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		switch {
		case ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			return // it ends, or lists anew
		case !informer.HasSynced():
			k.SetNamespacesKnown(time.Now(), "the labels of the namespaces cannot be read: "+err.Error())
		case !failing.Swap(true):
			n.log.WithError(err).Warn("cannot watch namespaces: the labels that were read last count; trying again")
		}
	})
}
