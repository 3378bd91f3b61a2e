package podwatch

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// extractor takes facts from pods before they are trimmed. Facts of an earlier version count for nothing.
type extractor struct {
	extract func(*corev1.Pod) startpolicy.Facts // nil: none are taken
	version uint64
	within  time.Duration
}

// ExtractFacts makes the watch take facts from every pod, before it forgets most of the pod; nil: none. For the pods
// that it knows already it lists them again, at a random moment within the given time, so that the nodes of a large
// cluster do not list all at once. OnChange is called for each. extract must be safe
// for concurrent use; where it panics, the pod counts as one that the watch understands nothing of.
func (w *Watch) ExtractFacts(extract func(*corev1.Pod) startpolicy.Facts, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts = extractor{extract: extract, version: w.facts.version + 1, within: within}
	if extract != nil && len(w.pods) > 0 {
		w.askToRelistLocked()
	}
}

func (w *Watch) extractorNow() extractor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.facts
}

// askToRelistLocked makes relist list the pods. w.mu must be held.
func (w *Watch) askToRelistLocked() {
	select {
	case w.relisting <- struct{}{}:
	default: // it will
	}
}

// relist lists all pods, whenever that is asked for because their facts are missing, until ctx ends.
func (w *Watch) relist(ctx context.Context) {
	for {
		select {
		case <-w.relisting:
		case <-ctx.Done():
			return
		}
		if within := w.extractorNow().within; within > 0 {
			select {
			case <-time.After(rand.N(within)):
			case <-ctx.Done():
				return
			}
		}
		w.informer.Relist()
	}
}
