package podwatch

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"
	"k8s.io/client-go/tools/cache"
)

// waiter is what every Await of one uid shares.
type waiter struct {
	known chan struct{} // closed once pod is set
	pod   Pod
	calls int
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
	w.log.WithError(err).Error("the pod watch dropped an event")
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
	w.telling.Lock()
	defer w.telling.Unlock()
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
		w.log.WithFields(logrus.Fields{"pod_namespace": after.Namespace, "pod_name": after.Name, "pod_uid": after.pod.UID}).
			Warn("a mirror pod with the uid of another pod is ignored")
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
	if c.epoch != w.taker.epoch {
		w.askToRetakeLocked()
	}
	if wait := w.waiting[uid]; wait != nil {
		wait.pod = c.pod
		close(wait.known)
		delete(w.waiting, uid)
	}
	return true
}

func (w *Watch) tell(pod Pod, deleted bool) {
	for _, f := range w.onChange {
		w.tellOne(f, pod, deleted)
	}
}

func (w *Watch) tellOne(f func(Pod, bool), pod Pod, deleted bool) {
	defer func() {
		if fault := recover(); fault != nil {
			w.failed(fault, "to act on a pod's change failed", pod)
		}
	}()
	f(pod, deleted)
}

func sameName(a, b *cached) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name
}
