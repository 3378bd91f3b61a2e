package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// forgivenAfter is how long a container must run so that its exit is forgiven. kubelet resets its back-off after
// the same time.
const forgivenAfter = 10 * time.Minute

// exits are the exits of the containers of one name, in one sandbox, since this daemon began. kubelet's restart
// count is of no use: it continues over a reboot, after which a start is a first start.
type exits struct {
	last time.Time
	// repeats counts the exits since the last that was forgiven.
	repeats int
}

// and returns the exits with one more, of a container that ran for the time ran.
func (e exits) and(at time.Time, ran time.Duration) exits {
	if ran >= forgivenAfter {
		return exits{last: at}
	}
	return exits{last: at, repeats: e.repeats + 1}
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
