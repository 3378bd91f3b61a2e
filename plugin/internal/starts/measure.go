package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/learning"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// stillBusy is how many cores a pod keeps busy whose start is not over, whatever settleTime says.
const stillBusy = 0.5

// course is what the loop measures of a start.
type course struct {
	usage.Start
	whole    bool      // it is measured from its beginning, so it is learned
	shadow   time.Time // when the start continued in the mode Shadow; zero if it did not
	restart  bool      // it is a start after a crash; only if whole
	expected learning.Expectation
}

// begin measures a start that begins for the first time. shadow is when it continued in the mode Shadow, or zero.
func (s *Starts) begin(now time.Time, p *Pod, t *throttle.Ticket, shadow time.Time) {
	defer s.o.Observer.CaughtPod("begin", t.UID(), t.Name())
	c := &course{whole: true, shadow: shadow, restart: t.Repeats() > 0, expected: learning.Expectation{Basis: learning.None}}
	if pod := s.Known(t.UID()); pod.IsKnown() {
		c.expected = s.o.Memory.Expect(pod, c.restart)
	}
	p.course = c
	s.measureOne(now, s.oneUnderWay(p))
}

// finish ends the measurement of a start, and learns what it took, if the reason of its end allows that.
func (s *Starts) finish(now time.Time, p *Pod, t *throttle.Ticket, reason reasons.Reason) {
	c := p.course
	if c == nil {
		return
	}
	uid := t.UID()
	defer s.o.Observer.CaughtPod("finish", uid, t.Name())
	defer func() { p.course = nil }()
	if !c.whole {
		return
	}
	s.measureOne(now, s.oneUnderWay(p))
	took, measured := c.Took()
	pod := s.Known(uid)
	if !measured || !pod.IsKnown() {
		return
	}
	if use, _ := c.Use(); reason == reasons.Settled && use.Cores >= stillBusy {
		s.SettledBusy.Add(1)
	}
	switch reason {
	case reasons.Ready, reasons.Settled:
	case reasons.Exited, reasons.CrashLoop, reasons.Failed:
		took.Killed = killed(took.Wall, pod.Patience)
		if !took.Killed {
			return
		}
	default:
		return
	}
	s.o.Memory.Learn(now, pod, c.restart, took)
	s.news.Store(true)
	s.o.Observer.Report(observe.Learned{
		Pod: observe.Pod{UID: uid, Name: pod.NamespacedName()}, Took: took, Basis: string(c.expected.Basis), Expected: c.expected.Cost,
	})
}

// updateProfiles updates in the limiter what all starts that wait or are under way are expected to take.
func (s *Starts) updateProfiles(now time.Time) {
	of := map[string]throttle.Profile{}
	for _, t := range s.live() {
		if pod := s.Known(t.UID()); pod.IsKnown() {
			of[t.UID()] = s.profile(pod, t.Repeats() > 0)
		}
	}
	s.setProfiles(now, of)
}

// setProfiles sets what pods are expected to take, by UID.
func (s *Starts) setProfiles(now time.Time, of map[string]throttle.Profile) {
	s.lock()
	defer s.unlock()
	s.ledger.limiter.SetProfiles(now, of)
}

// profile returns what the start of a pod is expected to take, and how soon a probe may kill it. restart reports
// whether it is a start after a crash. Starts of other kinds do not count.
func (s *Starts) profile(pod podwatch.Pod, restart bool) throttle.Profile {
	e := s.o.Memory.Expect(pod, restart)
	known := throttle.Profile{Kind: e.Kind, Patience: pod.Patience}
	if e.Basis != learning.None && e.Basis != learning.Namespace {
		known.Cost = &e.Cost
	}
	return known
}

// killed reports whether a probe may have killed a start that failed after this time. A start that crashed so late
// by itself is a minimum, too. soonest is how soon a probe may kill; a second or less does not tell a kill from a crash.
func killed(took, soonest time.Duration) bool {
	return soonest > time.Second && took >= soonest/2
}

// underWay is a start that the loop follows: one that holds a slot, or that continued at once in the mode Shadow, until it
// is measured and its ticket has ended. It is a copy of what is known of it at one moment.
type underWay struct {
	pod      *Pod
	uid      string
	name     string
	ticket   *throttle.Ticket
	starting bool
	shadow   shadow // the zero value if it did not continue at once
	target   usage.Target
	made     time.Time // when its last container was made; zero if none was
	runs     bool      // it is to be measured: the pod is known, and the start is not one that is over and only keeps its slot
}

// underWay returns the starts that the loop follows.
func (s *Starts) underWay() (all []underWay) {
	s.lock()
	defer s.unlock()
	for _, p := range s.ledger.pods {
		if one := s.ledger.underWay(p); one.starting || one.shadow.ticket != nil && (one.shadow.ended == "" || p.course != nil) {
			all = append(all, one)
		}
	}
	return all
}

// oneUnderWay returns what is known of a start now.
func (s *Starts) oneUnderWay(p *Pod) underWay {
	s.lock()
	defer s.unlock()
	return s.ledger.underWay(p)
}

func (l *ledger) underWay(p *Pod) underWay {
	state, _ := p.ticket.Status()
	one := underWay{pod: p, uid: p.UID, name: p.NamespacedName(), ticket: p.ticket, starting: state == throttle.Starting}
	if p.shadow != nil {
		if state, _ := p.shadow.ticket.Status(); state == throttle.Waiting || state == throttle.Starting {
			one.shadow = *p.shadow
		}
	}
	sh := p.inShadow()
	one.runs = p.reported && l.pods[p.UID] == p && (sh == nil || sh.endedAt.IsZero())
	one.target, one.made = usage.Target{CgroupParent: p.cgroup, PIDs: p.pids()}, p.latest().made
	return one
}

// follow measures the starts under way, and judges those that hold a slot. It returns when to do that again, or zero if
// something has to happen first.
func (s *Starts) follow(now time.Time) (next time.Time) {
	all, reported := s.underWay(), s.reported(now)
	for _, one := range all {
		s.followShadow(now, one)
	}
	next = s.measure(now, all)
	for _, one := range all {
		if one.starting {
			next = sooner(next, s.judgeOne(now, one, reported))
		}
	}
	return next
}

// followShadow begins and ends the measurement of a start that continued at once in the mode Shadow. That begins and ends
// independently of its ticket.
func (s *Starts) followShadow(now time.Time, one underWay) {
	sh, c := one.shadow, one.pod.course
	if sh.ticket == nil {
		return
	}
	if sh.ended == "" && !sh.settles.IsZero() && !now.Before(sh.settles) {
		s.review(now, one.uid, one.name)
	}
	switch {
	case sh.ended != "":
		s.finish(now, one.pod, sh.ticket, sh.ended)
	case c == nil || !c.shadow.IsZero() && !c.shadow.Equal(sh.began): // that of a start before ends with its event
		s.begin(now, one.pod, sh.ticket, sh.began)
	}
}

// measure measures starts, and tells the limiter what they use and, if other pods wait, which make no progress. It returns
// the time of the next measurement, or zero if none is needed.
func (s *Starts) measure(now time.Time, all []underWay) (next time.Time) {
	if len(all) == 0 {
		return time.Time{}
	}
	due, next := s.meter.Begin(now, len(all))
	if !due {
		return next
	}
	s.lock()
	lentAfter, waiting := s.ledger.limiter.Settings().NoProgressAfter, len(s.ledger.limiter.Waiting()) > 0
	s.unlock()
	for _, one := range all {
		s.measureOne(now, one)
		s.inform(now, one, lentAfter, waiting)
	}
	return next
}

// measureOne measures one start unless it is over. A panic does not affect the others.
func (s *Starts) measureOne(now time.Time, one underWay) {
	defer s.o.Observer.CaughtPod("measure", one.uid, one.name)
	if !one.runs {
		return
	}
	if one.pod.course == nil {
		one.pod.course = &course{}
	}
	if blind := s.meter.Measure(now, &one.pod.course.Start, one.target); blind != nil {
		s.o.Observer.Report(observe.Unmeasured{Pod: observe.Pod{UID: one.uid, Name: one.name}, Why: blind})
	}
}

// inform tells the limiter what a start has used since its admission, and since when it makes no progress, if other pods
// wait. lentAfter is how long a start must make none until a slot is lent, or below zero if none is.
func (s *Starts) inform(now time.Time, one underWay, lentAfter time.Duration, waiting bool) {
	var use adaptive.Use
	var known bool
	var stalled time.Time
	if c := one.pod.course; one.runs && c != nil {
		use, known = c.Use()
		if lentAfter >= 0 {
			stalled = s.meter.StalledSince(&c.Start, lentAfter) // also while none waits, or it would miss progress
		}
		if !stalled.IsZero() && one.made.After(stalled) {
			stalled = one.made // to make a container is progress, such as the app after an init container that waited
		}
		if !waiting {
			stalled = time.Time{}
		}
	}
	s.lock()
	defer s.unlock()
	if known {
		one.ticket.SetUse(use)
	}
	one.ticket.SetStalled(now, stalled)
}
