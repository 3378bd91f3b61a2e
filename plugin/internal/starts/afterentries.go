package starts

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// afterPods are the part of the ledger about the pods that others wait for.
type afterPods struct {
	entries []*afterEntry
	ready   map[string]bool // the texts of all entries of which kubelet reported a ready pod once, in force or not
	node    string          // the UID of the Node object; empty if it is not known yet
	paces   bool            // this daemon paces pods, so what it sees counts
}

// afterEntry is an entry of startAfter.
type afterEntry struct {
	text                 string // as String of the entry returns it
	namespace, daemonSet string // daemonSet is empty if the entry has a selector
	timeout              time.Duration
	again                bool
	from                 time.Time // the timeout counts from then
	state                observe.AfterState
}

// seemsUpAfter is how long the containers of a pod must have run to count as ready without a report of kubelet. It is longer
// than that for a slot: those who start too early crash, and there is the timeout of the entry.
const seemsUpAfter = 30 * time.Second

// nodePods is what the API server says of the node. The zero value: nothing.
type nodePods struct {
	node    string // the UID of its Node object
	settled bool   // that was made so long ago that the node has the pods of its DaemonSets
	pods    []podwatch.Pod
	listed  bool // those are all its pods
	healthy bool // and they are up to date, or were until a moment ago
	alone   bool // there is no API server
}

// end returns when pods wait for the entry no longer.
func (a *afterEntry) end() time.Time { return a.from.Add(a.timeout) }

// replace replaces the entries. One that was there before keeps its time.
func (p *afterPods) replace(next []*afterEntry) {
	for _, a := range next {
		for _, before := range p.entries {
			if before.text == a.text {
				a.from, a.state = before.from, before.state
			}
		}
	}
	p.entries = next
}

// restart makes the timeouts count from now.
func (p *afterPods) restart(now time.Time) {
	for _, a := range p.entries {
		a.from = now
	}
}

// wakes reports whether a change of a pod may change for whom others wait.
func (p *afterPods) wakes() bool {
	return slices.ContainsFunc(p.entries, func(a *afterEntry) bool {
		return a.again || a.state == observe.AfterWaiting || a.state == observe.AfterReady && !p.ready[a.text]
	})
}

// isNew reports whether the Node object is another one than before. Then nothing was ready once.
func (p *afterPods) isNew(now time.Time, node string) bool {
	before := p.node
	if node == "" || node == before {
		return false
	}
	p.node = node
	if before != "" {
		p.restart(now)
		clear(p.ready)
	}
	return true
}

// pauseAfter finds the state of each entry, and holds pods while they have to wait for one. It returns whether they do.
func (l *ledger) pauseAfter(now time.Time, on nodePods) (holds bool) {
	after := &l.after
	keep := after.isNew(now, on.node)
	if !on.listed && !l.hasReported() { // kubelet has no pods yet: it waits for the API server, too
		after.restart(now)
	}
	var missing []string
	var pause throttle.Pause
	for _, a := range after.entries {
		found, reported := l.afterState(now, a, on)
		if a.again && a.state == observe.AfterReady && found != observe.AfterReady {
			a.from = now
		}
		if reported || on.alone && found == observe.AfterReady { // else what seems to be ready may turn out not to be
			keep, after.ready[a.text] = keep || !after.ready[a.text], true
		}
		switch end := a.end(); {
		case found != observe.AfterWaiting:
		case !a.again && (after.ready[a.text] || a.state == observe.AfterReady && !on.healthy):
			found = observe.AfterReady
		case end.After(now):
			missing = append(missing, a.text)
			pause.Since = sooner(pause.Since, a.from)
			if end.After(pause.Until) {
				pause.Until = end
			}
		default:
			found = observe.AfterTimedOut
		}
		if found != a.state && after.paces {
			l.report(observe.StartAfter{For: a.text, State: found, Took: now.Sub(a.from)})
		}
		a.state = found
	}
	pause.For = strings.Join(missing, ", ")
	pause.Put(now, l.limiter)
	if keep && after.paces {
		l.effects.ready = &ReadyOnce{Node: after.node, Entries: append([]string{}, slices.Sorted(maps.Keys(after.ready))...)}
	}
	return len(missing) > 0
}

// afterState returns whether a pod of an entry is ready (AfterReady), none is on the node (AfterAbsent), or neither
// (AfterWaiting). Without the API server, a pod is known by its sandbox, and seems to be ready once all its containers
// have run for seemsUpAfter. reported reports whether kubelet has said that a pod is ready.
func (l *ledger) afterState(now time.Time, a *afterEntry, on nodePods) (state observe.AfterState, reported bool) {
	seems := false
	known, absent := make(map[string]bool, len(on.pods)), on.listed && on.settled
	for _, pod := range on.pods {
		known[pod.UID] = true
		absent = absent && (a.daemonSet != "" || pod.Namespace != a.namespace || pod.Selected != nil && !pod.SelectedBefore)
		if !a.selects(pod) || pod.Terminal() {
			continue
		}
		absent = false
		var run Progress
		if p := l.pods[pod.UID]; p != nil {
			run = p.progress(time.Time{}, pod)
		}
		if pod.Deleting {
			continue
		}
		if pod.ContainersReady && pod.Describes(run.IDs) && len(run.IDs) > 0 {
			return observe.AfterReady, true
		}
		seems = seems || !on.healthy && seemsUp(now, run, pod)
	}
	for uid, p := range l.pods {
		if !p.reported || known[uid] || on.healthy || !a.seemsToSelect(p) {
			continue
		}
		absent = false
		seems = seems || seemsUp(now, p.progress(time.Time{}, podwatch.Pod{}), podwatch.Pod{})
	}
	switch {
	case seems:
		return observe.AfterReady, false
	case absent:
		return observe.AfterAbsent, false
	default:
		return observe.AfterWaiting, false
	}
}

// hasReported reports whether the runtime has told of any pod.
func (l *ledger) hasReported() bool {
	for _, p := range l.pods {
		if p.reported {
			return true
		}
	}
	return false
}

// seemsUp reports whether all containers of a pod have run for so long that the pod seems to be ready. pod is what is known
// of it.
func seemsUp(now time.Time, run Progress, pod podwatch.Pod) bool {
	return len(run.IDs) > 0 && !run.Making && now.Sub(run.Youngest) >= seemsUpAfter && (len(pod.Containers) == 0 || pod.HasApp(run.IDs))
}

// selects reports whether a pod is one of the entry, by the API server.
func (a *afterEntry) selects(pod podwatch.Pod) bool {
	if a.daemonSet == "" {
		return slices.Contains(pod.Selected, a.text)
	}
	return pod.DaemonSet && pod.Namespace == a.namespace && pod.Like.Owner == "DaemonSet/"+a.daemonSet
}

// A DaemonSet's pod has the name of the DaemonSet with a hyphen, cut off at 58 characters, and five more.
const (
	longestPrefix = 58
	suffix        = 5
)

// seemsToSelect reports the same by the runtime: by the namespace, the name and the labels of the sandbox. A user who may
// make pods in the namespace may choose all but the first.
func (a *afterEntry) seemsToSelect(p *Pod) bool {
	if a.daemonSet == "" {
		return slices.Contains(p.selected, a.text)
	}
	prefix := a.daemonSet + "-"
	rest, of := strings.CutPrefix(p.Name, prefix[:min(len(prefix), longestPrefix)])
	return p.Template && p.Namespace == a.namespace && of && len(rest) == suffix && !strings.Contains(rest, "-")
}
