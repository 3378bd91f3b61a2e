package plugin

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// podLog gives a logger whose lines tell of one pod.
func (p *pacer) podLog(uid, title string) logrus.FieldLogger {
	namespace, name := splitTitle(title)
	return p.log.WithFields(logrus.Fields{"pod_namespace": namespace, "pod_name": name, "pod_uid": uid})
}

// startLog gives a logger whose lines tell of one start: of its pod, and of the
// container that was made last.
func (p *pacer) startLog(uid, title string) logrus.FieldLogger {
	log := p.podLog(uid, title)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[uid]; r != nil {
		if c := r.latest(); c != nil {
			log = log.WithField("container_id", c.id)
		}
	}
	return log
}

// latest gives the container that was made last, or nil.
func (r *record) latest() *container {
	var last *container
	for _, c := range r.containers {
		if last == nil || c.made.After(last.made) {
			last = c
		}
	}
	return last
}

// logWait tells that a start waits, where, and behind how many: for all to read
// the first time, and each time for those who look closely.
func (p *pacer) logWait(now time.Time, r *record, d throttle.Decision, message string, more logrus.Fields) {
	v, _ := p.limiter.View(now, r.uid)
	log := p.podLog(r.uid, r.title()).WithFields(more).WithFields(logrus.Fields{
		"reason": d.Reason, "held": admin.HeldText(d.Held), "queue_position": d.Ahead + 1, "wait_ms": now.Sub(v.Arrived).Milliseconds(),
	})
	if p.firstWait(r, v.Arrived) {
		log.Infof("pod %s %s", r.title(), message)
		return
	}
	log.Debugf("pod %s %s", r.title(), message)
}

// firstWait tells whether nobody was told yet of the wait that began then.
func (p *pacer) firstWait(r *record, arrived time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !r.waitSaid.Equal(arrived)
	r.waitSaid = arrived
	return first
}
