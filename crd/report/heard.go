package report

import (
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// heard is when each node was heard of last, by the name of its PacemakerNode.
type heard map[string]lastWord

type lastWord struct{ written, at time.Time }

// nodes gives what the nodes of this instance tell behind which somebody stands still. A
// daemon that was stopped says so, and is not ready; one that is silent was removed
// without having been able to.
func (s *Summary) nodes(now time.Time, store cache.Store) (there []v1alpha1.PacemakerNodeStatus) {
	before := s.heard
	s.heard = make(heard, len(before))
	for _, item := range store.List() {
		n, ok := item.(*v1alpha1.PacemakerNode)
		if !ok || n.Status.Instance != s.Instance || n.Status.Written == nil {
			continue
		}
		last := before.next(now, n.Name, n.Status.Written.Time)
		s.heard[n.Name] = last
		if now.Sub(last.at) <= goneAfter {
			there = append(there, n.Status)
		}
	}
	return there
}

// next gives when a node was heard of that has written at a time by its own clock. That is
// believed where nobody has seen it write: clocks may differ by more than goneAfter.
func (h heard) next(now time.Time, name string, written time.Time) lastWord {
	last, known := h[name]
	switch {
	case !known && written.Before(now):
		return lastWord{written: written, at: written}
	case known && written.Equal(last.written):
		return last
	default:
		return lastWord{written: written, at: now}
	}
}
