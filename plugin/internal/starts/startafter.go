package starts

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const (
	// lookAfterEvery is the time between two looks at the pods that others wait for. Most changes are seen at once.
	lookAfterEvery = time.Second
	// newNodeFor is how long after its Node object was made a node may have yet to get the pods of its DaemonSets.
	newNodeFor = 30 * time.Second
)

// StartAfter holds pods until others are ready, by startAfter in the configuration. It is part of a Starts. Its methods
// do not block, except for a small file that Options.KeepReady writes, and are safe for concurrent use.
type StartAfter struct {
	s         *Starts
	selectors atomic.Pointer[afterSelectors]
}

// ReadyOnce are the entries of startAfter that had a ready pod since the node booted.
type ReadyOnce struct {
	// Node is the UID of the Node object at that time; empty if it was not known.
	Node string `json:"node,omitempty"`
	// Entries are the entries, as [v1alpha1.StartAfter.String] returns them.
	Entries []string `json:"entries"`
}

// Begin notes that this daemon paces pods from now on: the timeouts count from now at the earliest. once is what an
// earlier daemon of this boot has seen.
func (a *StartAfter) Begin(now time.Time, once ReadyOnce) {
	a.s.lock()
	after := &a.s.ledger.after
	after.paces, after.node = true, once.Node
	for _, one := range after.awaited {
		one.from, one.state, one.once = now, "", slices.Contains(once.Entries, one.text)
		if one.once {
			one.state = observe.AfterReady
		}
	}
	a.s.unlock()
	a.look(now)
}

// configure puts the entries of a configuration in force, before the limiter can admit a pod by its other settings.
func (a *StartAfter) configure(now time.Time, spec v1alpha1.PacemakerConfigSpec) {
	all := spec.StartAfter
	if spec.GetMode() == v1alpha1.ModeDisabled {
		all = nil
	}
	next, selectors := make([]*awaited, 0, len(all)), afterSelectors{}
	for _, one := range all {
		namespace, daemonSet := one.Pods()
		if daemonSet == "" {
			selectors = append(selectors, afterSelector{one.String(), namespace, one.PodSelector.Selector()})
		}
		next = append(next, &awaited{
			text: one.String(), namespace: namespace, daemonSet: daemonSet, timeout: one.GetTimeout(), again: one.Again, from: now,
		})
	}
	a.s.lock()
	a.s.ledger.after.replace(next)
	a.s.unlock()
	watch, before := a.s.o.Pods, a.selectors.Swap(&selectors)
	if watch != nil && !(before == nil && len(selectors) == 0) && (before == nil || !reflect.DeepEqual(*before, selectors)) {
		watch.SelectBy(selectors.function(), a.s.o.Relist())
	}
	a.look(now)
}

// look looks at the pods that others wait for, and holds pods while they have to wait. It returns when to look again at
// the latest, or zero if something has to happen first.
func (a *StartAfter) look(now time.Time) (next time.Time) {
	a.s.lock()
	has := len(a.s.ledger.after.awaited) > 0
	open := slices.ContainsFunc(a.s.ledger.after.awaited, func(one *awaited) bool { return one.again || !one.once }) // it may be waited for
	a.s.unlock()
	var on nodePods
	if has {
		on = a.nodePods(now, open)
	}
	once, holds := a.s.lookAfter(now, on)
	if once != nil && a.s.o.KeepReady != nil {
		a.s.o.KeepReady(*once)
	}
	if holds {
		return now.Add(lookAfterEvery)
	}
	return time.Time{}
}

func (s *Starts) lookAfter(now time.Time, on nodePods) (once *ReadyOnce, holds bool) {
	s.lock()
	defer s.unlock()
	return s.ledger.lookAfter(now, on)
}

// nodePods returns what the API server says of the node, without the pods if none may be waited for.
func (a *StartAfter) nodePods(now time.Time, pods bool) (n nodePods) {
	o := a.s.o
	if o.Pods == nil {
		return n
	}
	if pods {
		n.healthy = o.Pods.Healthy()
		n.pods, n.listed = o.Pods.OnNode()
	}
	var made time.Time
	n.node, made = o.Node()
	n.settled = !made.IsZero() && now.Sub(made) >= newNodeFor
	return n
}

// selecting returns which entries select the pod of a sandbox by its labels.
func (a *StartAfter) selecting(sandbox *api.PodSandbox) []string {
	all := a.selectors.Load()
	if all == nil {
		return nil
	}
	return all.selecting(sandbox.GetNamespace(), sandbox.GetLabels())
}

// AfterView is an entry of startAfter. Until is when pods wait for it no longer; it is zero if they do not wait for it.
type AfterView struct {
	For   string
	State observe.AfterState
	Until time.Time
}

// View returns the entries in force, and how far their pods are.
func (a *StartAfter) View() (all []AfterView) {
	a.s.lock()
	defer a.s.unlock()
	for _, one := range a.s.ledger.after.awaited {
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

// selecting returns which of the entries select a pod. It is not nil.
func (all afterSelectors) selecting(namespace string, its map[string]string) []string {
	found := []string{}
	for _, a := range all {
		if a.namespace == namespace && a.selector.Matches(labels.Set(its)) {
			found = append(found, a.text)
		}
	}
	return found
}

// function returns what SelectBy of the pod watch gets.
func (all afterSelectors) function() func(namespace string, its map[string]string) []string {
	if len(all) == 0 {
		return nil
	}
	return all.selecting
}

// hold returns the Hold for these entries, or the zero value without any.
func hold(missing []*awaited) (h throttle.Hold) {
	for i, a := range missing {
		if end := a.end(); end.After(h.Until) {
			h.Until = end
		}
		if i == 0 || a.from.Before(h.Since) {
			h.Since = a.from
		}
		if i > 0 {
			h.For += ", "
		}
		h.For += a.text
	}
	return h
}
