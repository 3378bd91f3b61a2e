// Package podwatch follows the pods of one node in the API server: who they are, and how far their start has come.
//
// It keeps about one KiB per pod, however large the pod is in the API, and knows each by the uid that NRI uses.
package podwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr/funcr"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Watch follows the pods that are bound to one node. Make it with [New]; all methods but Run and OnChange may be
// called at any time from any goroutine.
type Watch struct {
	node     string
	log      logrus.FieldLogger
	health   *health
	informer cache.Controller
	onChange []func(pod Pod, deleted bool)

	mu      sync.Mutex
	started bool
	pods    map[string]*cached // by NRI uid
	waiting map[string]*waiter // by NRI uid
}

// waiter is what every Await of one uid shares.
type waiter struct {
	known chan struct{} // closed once pod is set
	pod   Pod
	calls int
}

// New returns a Watch of the pods on node. It starts nothing and asks nothing yet.
// The client needs the right to list and watch pods in all namespaces.
func New(client kubernetes.Interface, node string, log logrus.FieldLogger) *Watch {
	w := &Watch{
		node:    node,
		log:     log,
		health:  newHealth(log),
		pods:    map[string]*cached{},
		waiting: map[string]*waiter{},
	}
	_, w.informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch(client, node, w.health),
		ObjectType:    &corev1.Pod{},
		Transform:     transform,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.change(nil, obj) },
			UpdateFunc: func(old, obj any) { w.change(old, obj) },
			DeleteFunc: func(obj any) { w.change(obj, nil) },
		},
	})
	return w
}

// OnChange registers f to be told of every change: of each pod that appears or changes, with deleted false, and of
// each that the API server no longer has, with deleted true and its last known state. A pod replaced by another of the
// same name is told as deleted before the new one. A deleted static pod lost only its mirror pod, which the kubelet
// makes again while the pod lives.
//
// All functions are called from one goroutine, in the order of the changes, after Get knows of the change.
// They should not block: later changes wait, also for Get and Await. OnChange panics once Run was called.
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
	w.mu.Lock()
	again := w.started
	w.started = true
	w.mu.Unlock()
	if again {
		return errors.New("podwatch: Run was called before")
	}
	// client-go logs each failed attempt; health says it once, so that is for debugging.
	debug := funcr.New(func(prefix, args string) { w.log.Debug(prefix, " ", args) }, funcr.Options{})
	w.informer.RunWithContext(klog.NewContext(ctx, debug))
	w.health.failed(errStopped)
	return nil
}

// Get returns the pod with this NRI uid, and whether it is known.
func (w *Watch) Get(uid string) (Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.pods[uid]; ok {
		return c.pod, true
	}
	return Pod{}, false
}

// Await returns the pod with this NRI uid as soon as it is known, or false when ctx ends before.
func (w *Watch) Await(ctx context.Context, uid string) (Pod, bool) {
	w.mu.Lock()
	if c, ok := w.pods[uid]; ok {
		w.mu.Unlock()
		return c.pod, true
	}
	wait := w.waiting[uid]
	if wait == nil {
		wait = &waiter{known: make(chan struct{})}
		w.waiting[uid] = wait
	}
	wait.calls++
	w.mu.Unlock()

	select {
	case <-wait.known:
		return wait.pod, true
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-wait.known:
		return wait.pod, true
	default:
	}
	if wait.calls--; wait.calls == 0 {
		delete(w.waiting, uid)
	}
	return Pod{}, false
}

// change applies one event of the informer: from old to obj, either of which may be nil.
func (w *Watch) change(old, obj any) {
	before, err := asCached(old)
	if err == nil {
		var after *cached
		if after, err = asCached(obj); err == nil {
			w.replace(before, after)
			return
		}
	}
	w.log.WithError(err).Error("The pod watch dropped an event")
}

// asCached returns what the informer keeps of a pod, also out of a tombstone; nil for nil.
func asCached(obj any) (*cached, error) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if obj == nil {
		return nil, nil
	}
	c, ok := obj.(*cached)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in place of a pod", obj)
	}
	return c, nil
}

// replace puts after in the place of before, of which either may be nil, and tells of it.
func (w *Watch) replace(before, after *cached) {
	if before != nil && (after == nil || after.pod.UID != before.pod.UID) {
		if w.remove(before) {
			w.tell(before.pod, true)
		}
		before = nil
	}
	if after == nil || (before != nil && before.ResourceVersion == after.ResourceVersion) {
		return
	}
	if !w.put(after) {
		w.log.WithFields(logrus.Fields{"pod": after.Namespace + "/" + after.Name, "uid": after.pod.UID}).
			Warn("A mirror pod with the uid of another pod is ignored")
		return
	}
	w.tell(after.pod, false)
}

// remove forgets c, and reports whether it was the pod known by its uid.
func (w *Watch) remove(c *cached) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.pods[c.pod.UID]
	if !ok || !sameName(known, c) {
		return false
	}
	delete(w.pods, c.pod.UID)
	return true
}

// put makes c known by its uid and wakes who awaits it. It reports false for a pod that only claims to be a mirror pod:
// the hash is an annotation that anybody may write, and must not hide a pod that has this very uid in the API.
func (w *Watch) put(c *cached) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := c.pod.UID
	if known, ok := w.pods[uid]; ok && c.pod.Static && !known.pod.Static {
		return false
	}
	w.pods[uid] = c
	if wait := w.waiting[uid]; wait != nil {
		wait.pod = c.pod
		close(wait.known)
		delete(w.waiting, uid)
	}
	return true
}

func (w *Watch) tell(pod Pod, deleted bool) {
	for _, f := range w.onChange {
		f(pod, deleted)
	}
}

func sameName(a, b *cached) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}
