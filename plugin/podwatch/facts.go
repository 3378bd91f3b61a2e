package podwatch

import (
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// extractor extracts facts from pods before they are trimmed. Facts of an earlier version are outdated.
type extractor struct {
	extract func(*corev1.Pod) startpolicy.Facts                       // nil if no facts are extracted
	selects func(namespace string, labels map[string]string) []string // nil if nothing selects pods
	version uint64
	chosen  uint64 // the version since which selects is the same
	within  time.Duration
}

// ExtractFacts makes the watch call extract for every pod, before it drops most of the pod. If extract is nil, it
// extracts no facts. If the watch knows pods already, it lists all pods again, at a random moment within the given
// time, so that the nodes of a large cluster do not list at the same moment. Then it reports each, see OnChange. extract
// must be safe for concurrent use. If extract panics, the watch knows only the name of the pod. ExtractFacts does not
// block.
func (w *Watch) ExtractFacts(extract func(*corev1.Pod) startpolicy.Facts, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.facts.extract = extract
	w.changeLocked(extract != nil, within)
}

// SelectBy makes the watch set Selected of every pod to what selects returns for it, before it drops the pod's labels.
// If selects is nil, the Selected of new pods is nil. For the pods that it knows already, it does so as ExtractFacts does.
// selects must not return nil, and must be safe for concurrent use. SelectBy does not block.
func (w *Watch) SelectBy(selects func(namespace string, labels map[string]string) []string, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if selects == nil && w.facts.selects == nil {
		return
	}
	w.facts.selects = selects
	w.changeLocked(selects != nil, within)
	w.facts.chosen = w.facts.version
}

// changeLocked makes what was extracted from pods outdated. needed reports whether something new is to be extracted.
// w.mu must be held.
func (w *Watch) changeLocked(needed bool, within time.Duration) {
	w.facts.version, w.facts.within = w.facts.version+1, within
	if needed && len(w.pods) > 0 {
		w.relistLocked(within)
	}
}

func (w *Watch) extractorNow() extractor {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.facts
}

// relistLocked makes the informer list all pods again, at a random moment within the given time. If it is going to do
// that within this time anyway, that moment stays: the earliest of many moments would not be spread over the time. w.mu
// must be held.
func (w *Watch) relistLocked(within time.Duration) {
	now, wait := time.Now(), rand.N(within+1)
	if w.relisting != nil {
		if !w.relistAt.After(now.Add(within)) {
			return
		}
		w.relisting.Stop()
	}
	w.relisting, w.relistAt = time.AfterFunc(wait, w.relist), now.Add(wait)
}

func (w *Watch) relist() {
	w.mu.Lock()
	w.relisting = nil
	w.mu.Unlock()
	w.informer.Relist()
}
