package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// beginning says what a container that is about to be made begins.
type beginning int

const (
	// startBegins: a start of its own, the first of the pod or one after a crash.
	startBegins beginning = iota
	// startGoesOn: the container belongs to a start that was admitted.
	startGoesOn
	// startBeside: the container never waits, for another of its pod runs and
	// would be held up; it is counted.
	startBeside
)

// beginsLocked tells what a container begins. p.mu must be held.
func (p *pacer) beginsLocked(r *record, name string, pod podwatch.Pod, known bool) beginning {
	if known && pod.Containers[name].Kind == podwatch.Ephemeral {
		return startGoesOn
	}
	t := p.limiter.Lookup(r.uid)
	if t == nil {
		if r.appRuns(name, pod) {
			return startBeside
		}
		return startBegins
	}
	state, reason := t.Status()
	switch state {
	case throttle.Starting:
		return startGoesOn
	case throttle.Waiting:
		if r.appRuns(name, pod) {
			return startBeside
		}
		return startBegins
	case throttle.Gone:
		if reason == throttle.Deleted {
			return startGoesOn
		}
	case throttle.Started:
		// By the node's own signs, a pod whose init container has ended, or sleeps,
		// looks like one that has started.
		guessed := (reason == throttle.Inferred || reason == throttle.Completed) && r.youngest() == nil
		if _, exited := r.exits[name]; !exited && !guessed {
			return startGoesOn
		}
	}
	if r.appRuns(name, pod) {
		return startBeside
	}
	return startBegins
}

// appRuns tells whether an app container of the pod runs beside the named one. A
// container that nobody knows the kind of counts as one.
func (r *record) appRuns(beside string, pod podwatch.Pod) bool {
	for _, c := range r.containers {
		if !c.running || c.name == beside {
			continue
		}
		if k := pod.Containers[c.name].Kind; k == podwatch.App || k == podwatch.Unknown {
			return true
		}
	}
	return false
}
