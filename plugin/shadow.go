package plugin

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// shadow is a start that went on at once in the mode Shadow, while its ticket
// waits and then holds a slot as the start itself would have with Enforce. The
// slot is held for as long as the start really took.
type shadow struct {
	ticket *throttle.Ticket
	reason throttle.Reason // what it would have waited for
	began  time.Time       // when it went on
	over   time.Time       // when it was really over; zero: not yet
}

// goOn lets a start go on though its ticket waits, in the mode Shadow.
func (p *pacer) goOn(now time.Time, uid string, t *throttle.Ticket, why throttle.Reason) {
	title, shadowed := p.beginShadow(now, uid, t, why)
	if !shadowed {
		return
	}
	t.Wait(now) // so that it is admitted when its turn comes
	p.metrics.unpaced.WithLabelValues(string(unpacedShadow)).Inc()
	p.podLog(uid, title).WithField("reason", why).Infof("pod %s would wait, and goes on: the mode is Shadow", title)
}

// beginShadow takes note that a start goes on; false: that is known already.
func (p *pacer) beginShadow(now time.Time, uid string, t *throttle.Ticket, why throttle.Reason) (title string, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	if r == nil || r.shadowOf(t) != nil {
		return "", false
	}
	r.shadow = &shadow{ticket: t, reason: why, began: now}
	return r.title(), true
}

// tellShadow tells what would have happened to a start that went on at once. It
// is no event of the pod, for nothing happened to that.
func (p *pacer) tellShadow(e throttle.Event, s shadow) {
	p.metrics.level(e)
	log := p.podLog(e.Ticket.UID(), e.Ticket.Name()).WithFields(logrus.Fields{
		"waiting": e.Waiting, "starting": e.Starting, "reason": s.reason,
	})
	switch e.State {
	case throttle.Starting:
		p.metrics.shadowWaits.WithLabelValues(string(s.reason)).Observe(e.Took.Seconds())
		log.WithField("wait_ms", e.Took.Milliseconds()).Infof("pod %s would have waited until now: the mode is Shadow", e.Ticket.Name())
	case throttle.Started, throttle.Gone:
		log.WithFields(logrus.Fields{"start_ms": e.Took.Milliseconds(), "reason": e.Reason}).Debugf("pod %s would have started by now: the mode is Shadow", e.Ticket.Name())
	}
}

// shadowOf gives what is known of the ticket's start if that went on at once in
// the mode Shadow, else nil. The pacer's mutex must be held.
func (r *record) shadowOf(t *throttle.Ticket) *shadow {
	if r.shadow == nil || r.shadow.ticket != t {
		return nil
	}
	return r.shadow
}

// markShadows says of pods which of them went on at once.
func (p *pacer) markShadows(pods []admin.Pod) {
	for i := range pods {
		if t := p.limiter.Lookup(pods[i].UID); t != nil {
			_, pods[i].Shadow = p.shadowed(t)
		}
	}
}

// shadowed gives a copy of what is known of a start that went on at once.
func (p *pacer) shadowed(t *throttle.Ticket) (s shadow, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[t.UID()]; r != nil && r.shadowOf(t) != nil {
		return *r.shadow, true
	}
	return shadow{}, false
}

// noteOver takes note of when a start that went on at once was really over.
func (p *pacer) noteOver(t *throttle.Ticket, at time.Time) (s shadow, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[t.UID()]
	if r == nil || r.shadowOf(t) == nil {
		return shadow{}, false
	}
	if r.shadow.over.IsZero() {
		r.shadow.over = at
	}
	return *r.shadow, true
}

// judgeShadow looks whether a start that went on at once is really over, while its
// ticket still waits.
func (p *pacer) judgeShadow(now time.Time, t *throttle.Ticket, pod podwatch.Pod) {
	if reason, since, _ := p.howItEnded(now, pod); reason != "" {
		p.noteOver(t, since)
	}
}

// endStart ends a start that was over at the given time. The slot of one that
// went on at once is kept for as long as the start took; again is when that is.
func (p *pacer) endStart(now time.Time, t *throttle.Ticket, reason throttle.Reason, over time.Time) (again time.Time) {
	if s, ok := p.noteOver(t, over); ok {
		v, _ := p.limiter.View(now, t.UID())
		if until := v.Admitted.Add(s.over.Sub(s.began)); now.Before(until) {
			return until
		}
	}
	t.End(now, reason)
	return time.Time{}
}

// endShadows forgets of every start that it went on at once, and gives those whose
// tickets still wait.
func (p *pacer) endShadows() (waiting []*record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.records {
		if r.shadow == nil {
			continue
		}
		if state, _ := r.shadow.ticket.Status(); state == throttle.Waiting {
			waiting = append(waiting, r)
		}
		r.shadow.ticket.StopWaiting(time.Now())
		r.shadow = nil
	}
	return waiting
}
