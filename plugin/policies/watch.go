package policies

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	var watch informer.Informer
	watch, err := n.watch(k, func(err error) {
		select {
		case <-watch.Synced(): // what was known stays
		default:
			k.SetNamespacesKnown(time.Now(), "the labels of the namespaces cannot be read: "+err.Error())
		}
	})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // where the rest panics
	running.Go(func() { watch.Run(ctx) })
	select {
	case <-watch.Synced():
		k.SetNamespacesKnown(time.Now(), "")
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// watch prepares the watch of all namespaces, which keeps of each no more than its labels.
func (n *Namespaces) watch(k *Keeper, failed func(error)) (informer.Informer, error) {
	api := n.client.Namespaces()
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: api.Watch,
	}
	trim := func(obj any) (any, error) {
		if namespace, ok := obj.(*corev1.Namespace); ok {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
			}}, nil
		}
		return obj, nil
	}
	reach := &informer.Reach{What: "namespaces", Log: n.log, Failed: failed, Meanwhile: "the labels that were read last count"}
	return informer.New(reach, lw, n.client, &corev1.Namespace{}, trim, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { tellOf(k, obj) },
		UpdateFunc: func(_, obj any) { tellOf(k, obj) },
		DeleteFunc: func(obj any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
				k.SetNamespace(time.Now(), name, nil)
			}
		},
	})
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
