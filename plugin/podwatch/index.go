package podwatch

import (
	"context"

	"github.com/sirupsen/logrus"
)

// Get returns the pod with this NRI uid, and whether it is known.
func (w *Watch) Get(uid string) (Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.pods[uid]; ok {
		return c.pod, true
	}
	return Pod{}, false
}

// OnNode returns all pods that are known, in no order, and whether the pods of the node were listed once: then those
// are all, or were when the API server was reached last.
func (w *Watch) OnNode() (pods []Pod, listed bool) {
	listed = w.informer.Listed() // before: a list that ends meanwhile may add pods
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.pods {
		pod := c.pod
		pod.SelectedBefore = c.version < w.facts.chosen
		pods = append(pods, pod)
	}
	return pods, listed
}

// Await blocks until the pod with this NRI uid is known, and returns the pod. It returns false if ctx ends before.
func (w *Watch) Await(ctx context.Context, uid string) (Pod, bool) {
	for {
		w.mu.Lock()
		c, ok := w.pods[uid]
		added := w.added
		w.mu.Unlock()
		if ok {
			return c.pod, true
		}
		select {
		case <-added:
		case <-ctx.Done():
			return w.Get(uid)
		}
	}
}

// change replaces before by after and reports that. before or after may be nil.
func (w *Watch) change(before, after *cached) {
	if before != nil && (after == nil || after.pod.UID != before.pod.UID) {
		if w.remove(before) {
			w.changed(before.pod, true)
		}
		before = nil
	}
	if after == nil || (before != nil && before.ResourceVersion == after.ResourceVersion && before.version == after.version) {
		return
	}
	if !w.put(after) {
		w.options.Log.WithFields(logrus.Fields{"pod_namespace": after.Namespace, "pod_name": after.Name, "pod_uid": after.pod.UID}).
			Warnf("pod %s/%s: a mirror pod with the uid of another pod is ignored", after.Namespace, after.Name)
		return
	}
	w.changed(after.pod, false)
	if after.pod.Terminal() {
		w.remove(after)
	}
}

// remove forgets c, and reports whether it was the pod known by its uid. A pod that has ended was, unless another one is.
func (w *Watch) remove(c *cached) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.pods[c.pod.UID]
	if ok && (known.Namespace != c.Namespace || known.Name != c.Name) {
		return false
	}
	delete(w.pods, c.pod.UID)
	return ok || c.pod.Terminal()
}

// put adds c by its uid and wakes the calls of Await. It returns false for a pod that only claims to be a mirror pod: any
// user may write the annotation with the hash, and it must not hide a pod that has this uid in the API.
func (w *Watch) put(c *cached) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	uid := c.pod.UID
	known, ok := w.pods[uid]
	if ok && c.pod.Static && !known.pod.Static {
		return false
	}
	w.pods[uid] = c
	if c.version != w.facts.version && (w.facts.extract != nil || w.facts.selects != nil) {
		w.relistLocked(w.facts.within)
	}
	if !ok {
		close(w.added)
		w.added = make(chan struct{})
	}
	return true
}
