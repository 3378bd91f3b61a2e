package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// Progress is how far a start is. The zero value: it has not begun.
type Progress struct {
	IDs      map[string]string // the IDs of the running containers, by name
	Youngest time.Time         // when the last of them began to run
	Made     time.Time         // when the daemon first knew that container
	Begun    bool              // one of them was made for this start
	// CrashLoops: kubelet holds back one that was made for this start and failed, but for those that expire noted.
	CrashLoops bool
	Making     bool // one in the present sandbox is in creation: a report that kubelet cannot make one is older
}

// progress returns how far the start of the pod is. joined is when it joined the queue, pod kubelet's report of it. A
// container has failed only if the report is about that container. A container that runs
// by the report counts as running: a runtime that was killed may not report its start. An ephemeral container is no part of
// a start.
func (p *Pod) progress(joined time.Time, pod podwatch.Pod) Progress {
	run := Progress{IDs: map[string]string{}}
	for _, c := range p.containers {
		if p.replaced(c) || pod.KindOf(c.name) == podwatch.Ephemeral {
			continue
		}
		ofStart := !c.made.Before(joined)
		reported := pod.Containers[c.name]
		since := c.since
		if !c.running {
			if c.exited || !reported.Running || c.id != reported.ID {
				run.CrashLoops = run.CrashLoops || (ofStart && !c.expired && c.id == reported.ID && reported.CrashLooping)
				run.Making = run.Making || c.inCreation() && p.inSandbox(c)
				continue
			}
			since = c.made
		}
		run.IDs[c.name] = c.id
		run.Begun = run.Begun || ofStart
		if since.After(run.Youngest) {
			run.Youngest, run.Made = since, c.made
		}
	}
	return run
}

// replaced reports whether a later container has the same name. A runtime that was killed may list both as running.
func (p *Pod) replaced(c *container) bool {
	for _, other := range p.containers {
		if other.name == c.name && other.made.After(c.made) {
			return true
		}
	}
	return false
}

// exitedSince reports whether a container exited in the pod's present sandbox at or after t.
func (p *Pod) exitedSince(t time.Time) bool {
	for _, e := range p.exits {
		if !e.last.Before(t) {
			return true
		}
	}
	return false
}

// allExited reports whether all app containers of the pod exited at or after t, and none of them runs. pod is kubelet's
// report. The result is false if the report has no app container.
func (p *Pod) allExited(t time.Time, pod podwatch.Pod) bool {
	apps := 0
	for name, c := range pod.Containers {
		if c.Kind != podwatch.App {
			continue
		}
		apps++
		if e, exited := p.exits[name]; !exited || e.last.Before(t) || p.runs(name) {
			return false
		}
	}
	return apps > 0
}

// runs reports whether a container of this name runs.
func (p *Pod) runs(name string) bool {
	for _, c := range p.containers {
		if c.running && c.name == name {
			return true
		}
	}
	return false
}

// allUndone reports whether the latest try to start the pod is over although no process of it ran (its container was
// rejected, undone, or could not be started), and no container runs or is in creation. pod is kubelet's report. The end of
// an init container is no such end, and an ephemeral container does not count.
func (p *Pod) allUndone(pod podwatch.Pod) bool {
	counts := func(name string) bool { return pod.KindOf(name) != podwatch.Ephemeral }
	undone := p.undone != "" && counts(p.undone)
	for _, c := range p.containers {
		switch reported := pod.Containers[c.name]; {
		case !counts(c.name):
		case c.running:
			return false
		case !c.inCreation():
		case reported.StartFailed && reported.ID == c.id:
			undone = true
		default:
			return false
		}
	}
	return undone
}
