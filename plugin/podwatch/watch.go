// Package podwatch follows the pods of one node in the API server: who they are, and how far their start has come.
//
// It keeps less than 2 KiB of a pod, however large the pod is in the API, and knows each by the uid that NRI uses.
package podwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr/funcr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// Watch follows the pods that are bound to one node. Make it with [New]; all methods but Run, OnChange and OnPanic may be
// called at any time from any goroutine.
type Watch struct {
	client   kube.Interface
	node     string
	log      logrus.FieldLogger
	health   *health
	onChange []func(pod Pod, deleted bool)
	onPanic  func()
	trim     func(*corev1.Pod) Pod
	retake   chan struct{} // holds at most one: facts of all pods are to be taken anew
	telling  sync.Mutex    // held from a change on until all were told of it

	mu      sync.Mutex
	taker   factTaker
	started bool
	synced  func() bool        // whether the first list was told; nil before Run
	pods    map[string]*cached // by NRI uid
	waiting map[string]*waiter // by NRI uid
}

// New returns a Watch of the pods on node. It starts nothing and asks nothing yet.
// The client needs the right to list and watch pods in all namespaces.
func New(client kube.Interface, node string, log logrus.FieldLogger) *Watch {
	return &Watch{
		client:  client,
		node:    node,
		log:     log,
		health:  newHealth(log),
		trim:    trim,
		retake:  make(chan struct{}, 1),
		onPanic: func() {},
		pods:    map[string]*cached{},
		waiting: map[string]*waiter{},
	}
}

// OnPanic has f told of every panic that is caught, also of those in the functions of [Watch.OnChange]; each is logged
// as well. It is to be called before Run.
func (w *Watch) OnPanic(f func()) { w.onPanic = f }

// OnChange registers f to be told of every change: of each pod that appears or changes, with deleted false, and of
// each that the API server no longer has, with deleted true and its last known state. A pod replaced by another of the
// same name is told as deleted before the new one. A deleted static pod lost only its mirror pod, which the kubelet
// makes again while the pod lives.
//
// All functions are called one after the other, in the order of the changes, after Get knows of the change.
// They should not block: later changes wait, also for Get and Await. One that panics misses this change; that is
// logged. OnChange panics once Run was called.
func (w *Watch) OnChange(f func(pod Pod, deleted bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		panic("podwatch: OnChange after Run")
	}
	w.onChange = append(w.onChange, f)
}

// Run follows the pods until ctx ends, then returns nil. An API server that cannot be reached or refuses is no reason
// to return: Run keeps trying, and [Watch.Err] says what is wrong. Run can be called once.
func (w *Watch) Run(ctx context.Context) error {
	if w.node == "" {
		return errors.New("podwatch: the node's name is empty")
	}
	informer, err := w.start()
	if err != nil {
		return fmt.Errorf("podwatch: %w", err)
	}
	// What client-go logs by itself is for debugging: health says what matters, and says it once.
	debug := funcr.New(func(prefix, args string) { w.log.Debug(prefix, " ", args) }, funcr.Options{})
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		w.takeAnew(ctx)
	}()
	informer.RunWithContext(klog.NewContext(ctx, debug))
	<-taken
	w.health.failed(errStopped)
	return nil
}

// start returns the informer, ready to run.
func (w *Watch) start() (cache.SharedIndexInformer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return nil, errors.New("Run was called before")
	}
	w.started = true
	informer := cache.NewSharedIndexInformer(listWatch(w.client, w.node, w.health), &corev1.Pod{}, 0, cache.Indexers{})
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.change(nil, obj) },
		UpdateFunc: func(old, obj any) { w.change(old, obj) },
		DeleteFunc: func(obj any) { w.change(obj, nil) },
	})
	if err != nil {
		return nil, err
	}
	w.synced = handler.HasSynced
	ignore := func(context.Context, *cache.Reflector, error) {} // listWatch notes more than this is told
	return informer, errors.Join(informer.SetTransform(w.transform), informer.SetWatchErrorHandlerWithContext(ignore))
}
