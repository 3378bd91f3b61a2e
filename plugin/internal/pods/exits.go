package pods

import "time"

// forgivenAfter is how long a container has to have run so that its exit is not held
// against it. kubelet forgets its back-off after the same time.
const forgivenAfter = 10 * time.Minute

// exits are what is known of the exits of the containers of one name, in one sandbox
// and since this daemon began. kubelet's own restart count says nothing: it goes on
// over a reboot, after which a start is as good as any.
type exits struct {
	last time.Time
	// repeats counts the exits since one that is not held against the container.
	repeats int
}

// and returns the exits with one more, of a container that ran for a time.
func (e exits) and(at time.Time, ran time.Duration) exits {
	if ran >= forgivenAfter {
		return exits{last: at}
	}
	return exits{last: at, repeats: e.repeats + 1}
}

// runs reports whether a container of this name runs.
func (r *podState) runs(name string) bool {
	for _, c := range r.containers {
		if c.running && c.name == name {
			return true
		}
	}
	return false
}
