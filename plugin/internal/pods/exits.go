package pods

import "time"

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
func (p *podState) runs(name string) bool {
	for _, c := range p.containers {
		if c.running && c.name == name {
			return true
		}
	}
	return false
}
