package starts

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
)

const (
	// lookAfterEvery is the time between two looks at the pods that others wait for. Most changes are seen at once.
	lookAfterEvery = time.Second
	// newNodeFor is how long after its Node object was made a node may have yet to get the pods of its DaemonSets.
	newNodeFor = 30 * time.Second
)

// ReadyOnce are the entries of startAfter that had a ready pod since the node booted.
type ReadyOnce struct {
	// Node is the UID of the Node object at that time; empty if it was not known.
	Node string `json:"node,omitempty"`
	// Entries are the entries, as [v1alpha1.StartAfter.String] returns them.
	Entries []string `json:"entries"`
}

// Begin notes that this daemon paces pods from now on: the timeouts of startAfter count from now at the earliest. once is
// what an earlier daemon of this boot has seen. It may write a small file, by Options.KeepReady.
func (s *Starts) Begin(now time.Time, once ReadyOnce) {
	s.lock()
	after := &s.ledger.after
	after.paces, after.node, after.ready = true, once.Node, map[string]bool{}
	for _, text := range once.Entries {
		after.ready[text] = true
	}
	for _, one := range after.entries {
		one.from, one.state = now, ""
		if after.ready[one.text] {
			one.state = observe.AfterReady
		}
	}
	s.unlock()
	s.lookAfter(now)
}

// setStartAfter puts the entries of a configuration in force, before the limiter can admit a pod by its other settings. In
// the mode Disabled none is, but the pods stay selected: otherwise they would not be known when the mode ends.
func (s *Starts) setStartAfter(now time.Time, spec v1alpha1.PacemakerConfigSpec) {
	var next []*afterEntry
	selectors := afterSelectors{}
	for _, one := range spec.StartAfter {
		namespace, daemonSet := one.Pods()
		if daemonSet == "" {
			selectors = append(selectors, afterSelector{one.String(), namespace, one.PodSelector.Selector()})
		}
		if spec.GetMode() != v1alpha1.ModeDisabled {
			next = append(next, &afterEntry{
				text: one.String(), namespace: namespace, daemonSet: daemonSet, timeout: one.GetTimeout(), again: one.Again, from: now,
			})
		}
	}
	s.lock()
	s.ledger.after.replace(next)
	s.unlock()
	if before := s.selectors.Swap(&selectors); s.o.Pods != nil && !reflect.DeepEqual(*before, selectors) {
		by := selectors.entriesOf
		if len(selectors) == 0 {
			by = nil
		}
		s.o.Pods.SelectBy(by, s.o.Relist())
	}
	s.lookAfter(now)
}

// lookAfter looks at the pods that others wait for, and holds pods while they have to wait. It returns when to look again at
// the latest, or zero if something has to happen first.
func (s *Starts) lookAfter(now time.Time) (next time.Time) {
	on := s.nodePods(now)
	s.lock()
	defer s.unlock()
	if s.ledger.pauseAfter(now, on) {
		return now.Add(lookAfterEvery)
	}
	return time.Time{}
}

// nodePods returns what the API server says of the node, without the pods if none may be waited for, and nothing without
// entries.
func (s *Starts) nodePods(now time.Time) (n nodePods) {
	s.lock()
	after := &s.ledger.after
	has, before := len(after.entries) > 0, after.node
	pods := slices.ContainsFunc(after.entries, func(one *afterEntry) bool { return one.again || !after.ready[one.text] })
	s.unlock()
	o := s.o
	n.alone = o.Pods == nil
	if !has || n.alone {
		return n
	}
	var made time.Time
	n.node, made = o.Node()
	if pods || n.node != before { // on another node, nothing was ready once
		n.healthy = s.reported(now)
		n.pods, n.listed = o.Pods.OnNode()
	}
	n.settled = !made.IsZero() && now.Sub(made) >= newNodeFor
	return n
}

// AfterView is an entry of startAfter. Until is when pods wait for it no longer; it is zero if they do not wait for it.
type AfterView struct {
	For   string
	State observe.AfterState
	Until time.Time
}

// StartAfter returns the entries of startAfter in force, and how far their pods are.
func (s *Starts) StartAfter() (all []AfterView) {
	s.lock()
	defer s.unlock()
	for _, one := range s.ledger.after.entries {
		v := AfterView{For: one.text, State: one.state}
		if one.state == observe.AfterWaiting {
			v.Until = one.end()
		}
		all = append(all, v)
	}
	return all
}

// afterSelector is an entry of startAfter with a selector.
type afterSelector struct {
	text, namespace string
	selector        labels.Selector
}

type afterSelectors []afterSelector

// entriesOf returns which of the entries select a pod. It is not nil.
func (all afterSelectors) entriesOf(namespace string, its map[string]string) []string {
	found := []string{}
	for _, a := range all {
		if a.namespace == namespace && a.selector.Matches(labels.Set(its)) {
			found = append(found, a.text)
		}
	}
	return found
}
