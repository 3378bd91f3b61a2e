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
	// startAtOnce: the container never waits, and is counted: another of its pod
	// runs and would be held up, or it is a restart and those are not paced.
	startAtOnce
	// startNever: the pod is deleted, and yet kubelet goes on with its next container.
	startNever
)

// beginsLocked tells what a container begins. p.mu must be held.
func (p *pacer) beginsLocked(r *record, name string, pod podwatch.Pod, known bool) beginning {
	if known && pod.Containers[name].Kind == podwatch.Ephemeral {
		return startGoesOn
	}
	if t := p.limiter.Lookup(r.uid); t != nil {
		if isDeleted(t) && p.holds() {
			return startNever
		}
		if r.goesOn(name, t) {
			return startGoesOn
		}
	}
	_, again := r.exits[name]
	if r.appRuns(name, pod) || (again && !p.config.Load().Spec.PacesRestarts()) {
		return startAtOnce
	}
	return startBegins
}

// isDeleted tells whether the pod of a ticket was deleted before its start was over.
func isDeleted(t *throttle.Ticket) bool {
	state, reason := t.Status()
	return state == throttle.Gone && reason == throttle.Deleted
}

// goesOn tells whether the named container belongs to the start of a ticket that was
// admitted, or that went on without that.
func (r *record) goesOn(name string, t *throttle.Ticket) bool {
	switch state, reason := t.Status(); state {
	case throttle.Starting:
		return true
	case throttle.Waiting:
		return r.shadowOf(t) != nil
	case throttle.Gone:
		return reason == throttle.Deleted
	case throttle.Started:
		// By the node's own signs, a pod whose init container has ended, or sleeps,
		// looks like one that has started.
		guessed := (reason == throttle.Inferred || reason == throttle.Completed) && r.youngest() == nil
		_, exited := r.exits[name]
		return !exited && !guessed
	default:
		return false
	}
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
