package plugin

import (
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
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

// modeGate tells hooks whether anybody is held at all. init makes it usable.
type modeGate struct {
	mu   sync.Mutex
	open chan struct{} // closed while nobody is held
}

func (g *modeGate) init() { g.open = make(chan struct{}) }

// opened gives a channel that is closed while nobody is held.
func (g *modeGate) opened() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *modeGate) set(holds bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if holds {
			g.open = make(chan struct{})
		}
	default:
		if !holds {
			close(g.open)
		}
	}
}

// offTimes tells whether the mode was Off at a time: what happened then is told later,
// when it may be another. The zero value: it never was.
type offTimes struct {
	mu           sync.Mutex
	since, until time.Time // of the latest; until zero: it lasts
}

// set follows the mode.
func (o *offTimes) set(now time.Time, off bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch is := !o.since.IsZero() && o.until.IsZero(); {
	case off && !is:
		o.since, o.until = now, time.Time{}
	case is && !off:
		o.until = now
	}
}

func (o *offTimes) at(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() && !t.Before(o.since) && (o.until.IsZero() || t.Before(o.until))
}

// mode is what is done with a start that a limit holds.
func (p *pacer) mode() v1alpha1.Mode { return p.config.Load().Spec.GetMode() }

// holds tells whether anybody is made to wait at all.
func (p *pacer) holds() bool { return p.mode() == v1alpha1.ModeEnforce }

// whyUnheld is the reason to let a start go on where nobody is held.
func (p *pacer) whyUnheld() throttle.Reason {
	if p.mode() == v1alpha1.ModeOff {
		return throttle.Off
	}
	return throttle.Shadow
}

// letGo is the answer to a hook that waits where nobody is held any more. gone is
// closed when nothing may start for its container.
func (p *pacer) letGo(t *throttle.Ticket, gone <-chan struct{}) gate.Verdict {
	if state, _ := t.Status(); state != throttle.Waiting || isClosed(gone) {
		return decided(t, gone)
	}
	now := time.Now()
	v, _ := p.limiter.View(now, t.UID())
	p.goOn(now, t.UID(), t, v.Reason)
	return gate.Verdict{Go: true, Reason: p.whyUnheld()}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// goOn lets a start go on though its ticket waits, in the mode Shadow.
func (p *pacer) goOn(now time.Time, uid string, t *throttle.Ticket, why throttle.Reason) {
	title, shadowed := p.beginShadow(now, uid, t, why)
	if !shadowed {
		return
	}
	t.Wait(now) // so that it is admitted when its turn comes
	p.metrics.unpaced.WithLabelValues(string(throttle.Shadow)).Inc()
	p.podLog(uid, title).WithField("reason", why).Info("would wait, and goes on: the mode is Shadow")
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
	switch e.Kind {
	case throttle.KindAdmitted:
		p.metrics.shadowWaits.WithLabelValues(string(s.reason)).Observe(e.Took.Seconds())
		log.WithField("wait_ms", e.Took.Milliseconds()).Info("would have waited until now: the mode is Shadow")
	case throttle.KindEnded:
		log.WithFields(logrus.Fields{"start_ms": e.Took.Milliseconds(), "reason": e.Reason}).Debug("would have started by now: the mode is Shadow")
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

// modeNews says what a change to a mode means for those that wait.
var modeNews = map[v1alpha1.Mode]string{
	v1alpha1.ModeEnforce: "the mode is Enforce now: starts wait for the limits",
	v1alpha1.ModeShadow:  "the mode is Shadow now: those that wait go on at once, and what would have been is reported",
	v1alpha1.ModeOff:     "the mode is Off now: no limit is in force, and those that wait go on at once",
}

// changeMode follows a change of the mode, at which so many waited. Nobody is lost by it: who waits at the
// gate goes on where nobody is held any more, and starts that went on at once are
// counted among those under way where somebody is again.
func (p *pacer) changeMode(now time.Time, before v1alpha1.Mode, waiting int) {
	mode := p.mode()
	if mode == before {
		return
	}
	p.log.WithFields(logrus.Fields{"mode": mode, "before": before, "waiting": waiting}).Warn(modeNews[mode])
	if mode != v1alpha1.ModeShadow {
		for _, r := range p.endShadows() {
			p.find(now, r)
		}
	}
	p.modeGate.set(p.holds())
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
