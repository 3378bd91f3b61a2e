package plugin

import "time"

// muteCheck is when to look for a mute pod watch. Made by newMuteCheck; only run uses it.
type muteCheck struct {
	after time.Duration // kubelet and the API server have to tell of a container that runs
	every time.Duration // between two looks whether they did
	next  time.Time
}

func newMuteCheck() muteCheck { return muteCheck{after: 30 * time.Second, every: 10 * time.Second} }

// findMute compares what the runtime tells with what the pod watch does: one that is
// open and told nothing of a pod of the API server since a container of it began to run
// is mute. From then on slots end by the node's own signs, and the pods are listed anew.
// Only run calls it.
func (p *pacer) findMute(now time.Time) {
	defer p.caught("findMute")
	if p.pods == nil || now.Before(p.mute.next) {
		return
	}
	p.mute.next = now.Add(p.mute.every)
	for _, c := range p.runFor(now, p.mute.after) {
		if p.pods.Heard(c.uid).Before(c.since) {
			p.pods.ListAnew(now, "pod "+c.title+" runs a container that the API server has not told of")
			return
		}
	}
}

// longRunning is a pod of the API server, and when the youngest container began to run of
// those that have run for a time.
type longRunning struct {
	uid, title string
	since      time.Time
}

// runFor gives the pods of the API server with a container that has run for so long.
func (p *pacer) runFor(now time.Time, atLeast time.Duration) (all []longRunning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		if !r.fromAPI {
			continue
		}
		youngest := time.Time{}
		for _, c := range r.containers {
			if c.running && now.Sub(c.since) >= atLeast && c.since.After(youngest) {
				youngest = c.since
			}
		}
		if !youngest.IsZero() {
			all = append(all, longRunning{uid: r.uid, title: r.title(), since: youngest})
		}
	}
	return all
}
