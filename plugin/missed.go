package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

const (
	// missedAfter is how long kubelet has to report a container of which the
	// runtime never told. What kubelet reports may be a moment old.
	missedAfter = 5 * time.Second
	// missedEvery is the time between two questions what the runtime runs.
	missedEvery = time.Minute
	// listingMargin is how long before the runtime told what it runs a container
	// may have begun to run and yet not have been among it.
	listingMargin = 10 * time.Second
)

// missedStarts finds containers that kubelet reports as running, and of which the
// runtime has not told: a plugin may miss events while it synchronizes. The runtime
// is asked again then, what it says is the truth. Made by newMissedStarts; safe for
// concurrent use.
type missedStarts struct {
	ask func() // has the runtime tell again what it runs

	mu     sync.Mutex
	listed time.Time             // when the runtime told what it runs
	asked  time.Time             // when it was asked again
	pods   map[string]missedWord // by UID
}

// missedWord is kubelet's word for a container.
type missedWord struct {
	id    string
	since time.Time // when it was first heard
	asked bool      // and the runtime since
}

func newMissedStarts() *missedStarts {
	return &missedStarts{ask: func() {}, pods: map[string]missedWord{}}
}

// told takes note that the runtime tells what it runs.
func (m *missedStarts) told(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed = now
}

// report takes note of what kubelet says of a pod: unknown is the ID of a container
// that runs and was not told of; empty: there is none. It tells whether that is new.
func (m *missedStarts) report(now time.Time, pod podwatch.Pod, unknown string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if unknown == "" || m.listed.IsZero() || pod.RunningSince.Before(m.listed.Add(-listingMargin)) {
		delete(m.pods, pod.UID)
		return false
	}
	if m.pods[pod.UID].id == unknown {
		return false
	}
	m.pods[pod.UID] = missedWord{id: unknown, since: now}
	return true
}

// due asks the runtime again where kubelet kept to its word. known tells whether the
// runtime has told of a pod's container meanwhile. It gives the time at which to
// call due again; zero: when something new is reported.
func (m *missedStarts) due(now time.Time, known func(uid, id string) bool) (again time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ripe []string
	for uid, w := range m.pods {
		switch at := w.since.Add(missedAfter); {
		case known(uid, w.id):
			delete(m.pods, uid)
		case w.asked: // nor does the runtime know of it: kubelet's word is of the past
		case now.Before(at):
			again = sooner(again, at)
		default:
			ripe = append(ripe, uid)
		}
	}
	if len(ripe) == 0 {
		return again
	}
	if earliest := m.asked.Add(missedEvery); now.Before(earliest) {
		return sooner(again, earliest)
	}
	for _, uid := range ripe {
		w := m.pods[uid]
		w.asked = true
		m.pods[uid] = w
	}
	m.asked = now
	m.ask()
	return again
}

// compare looks for a container that kubelet reports as running and of which the
// runtime has not told.
func (p *pacer) compare(now time.Time, pod podwatch.Pod, deleted bool) {
	unknown := ""
	if !deleted && !pod.Deleting && !pod.Terminal() {
		for _, c := range pod.Containers {
			// Of several always the same one: kubelet has to keep to its word for it.
			if c.Running && c.ID != "" && (unknown == "" || c.ID < unknown) && !p.knowsContainer(pod.UID, c.ID) {
				unknown = c.ID
			}
		}
	}
	if p.missed.report(now, pod, unknown) {
		p.podLog(pod.UID, pod.Namespace+"/"+pod.Name).WithField("container_id", unknown).
			Debug("kubelet reports a container of which the runtime has not told")
		p.wake()
	}
}

// knowsContainer tells whether the runtime has told of a container that exists.
func (p *pacer) knowsContainer(uid, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	return r != nil && r.containers[id] != nil
}
