package podwatch

import (
	"errors"
	"time"
)

const (
	// askEvery is the least time between two lists that [Watch.ListAnew] asks for.
	askEvery = 5 * time.Minute
	// askWithin spreads these lists: after etcd was restored, the watches of all nodes may be silent at once.
	askWithin = 30 * time.Second
)

// Healthy reports whether what is known of the pods of this node is up to date, as far as the API server can be
// reached. It is false before the first list is complete, after a failed list or watch until the next watch is
// connected, and after Run. The caller of [Watch.ListAnew] notices a watch that is connected and silent.
func (w *Watch) Healthy() bool { return w.informer.Current() }

// Listed reports whether the pods of the node were listed once: then what is known of them is right, or was when the
// API server was reached last.
func (w *Watch) Listed() bool { return !w.informer.Listed().IsZero() }

// LastReport returns when the API server last reported the pod with this NRI uid, or when the last list of all pods
// began, whichever is later. It is zero before the first list.
func (w *Watch) LastReport(uid string) time.Time {
	listed := w.informer.Listed()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.pods[uid]; ok && c.reportedAt.After(listed) {
		return c.reportedAt
	}
	return listed
}

// ListAnew lists the pods again, because the watch missed a change: why is the evidence. [Watch.Healthy] is false until
// the pods were listed from the API server's newest state. The list begins at a random moment of the next 30 s. Within 5
// minutes of an earlier call, and while the watch is not healthy anyway, ListAnew does nothing. It does not block.
func (w *Watch) ListAnew(now time.Time, why string) {
	if w.Healthy() && w.asks.AllowN(now, 1) {
		w.informer.Distrust(errors.New("the watch is connected but delivers no changes: " + why)) // before the list, so that it is from the newest state
		w.mu.Lock()
		defer w.mu.Unlock()
		w.relistLocked(askWithin)
	}
}
