package starts

import (
	"maps"
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

// course is a start that was measured from its beginning.
type course struct {
	restart  bool // after a crash
	expected learning.Expectation
}

// begin measures a start that begins for the first time.
func (l *loop) begin(now time.Time, t *throttle.Ticket) {
	uid := t.UID()
	defer l.s.o.Observer.CaughtPod("begin", uid, t.Name())
	c := &course{restart: t.Repeats() > 0, expected: learning.Expectation{Basis: learning.None}}
	if pod, known := l.s.Known(uid); known {
		c.expected = l.s.o.Memory.Expect(pod, c.restart)
	}
	l.courses[uid] = c
	l.measured.Forget(uid)
	l.measureOne(now, uid)
}

// finish learns what a start took, if the reason of its end allows that.
func (l *loop) finish(now time.Time, t *throttle.Ticket, reason reasons.Reason) {
	uid := t.UID()
	c := l.courses[uid]
	if c == nil {
		return
	}
	defer l.s.o.Observer.CaughtPod("finish", uid, t.Name())
	delete(l.courses, uid)
	l.measureOne(now, uid)
	took, measured := l.measured.Took(uid)
	pod, known := l.s.Known(uid)
	if !measured || !known {
		return
	}
	if use, _ := l.measured.Use(uid); reason == reasons.Settled && use.Cores >= stillBusy {
		l.s.SettledBusy.Add(1)
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
	l.s.o.Memory.Learn(now, pod, c.restart, took)
	l.s.updateProfiles(now)
	l.s.o.Observer.Report(observe.Learned{
		Pod: observe.Pod{UID: uid, Name: pod.NamespacedName()}, Took: took, Basis: string(c.expected.Basis), Expected: c.expected.Cost,
	})
}

// updateProfiles updates in the limiter what all starts that wait or are under way are expected to take.
func (s *Starts) updateProfiles(now time.Time) {
	of := map[string]throttle.Profile{}
	for _, t := range s.live() {
		if pod, known := s.Known(t.UID()); known {
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

// setProgress sets what a start has used since its admission, unless use is nil, and since when it makes no progress, or
// zero if it makes some.
func (s *Starts) setProgress(now time.Time, uid string, use *adaptive.Use, stalledSince time.Time) {
	s.lock()
	defer s.unlock()
	if use != nil {
		s.ledger.limiter.SetUse(uid, *use)
	}
	s.ledger.limiter.SetStalled(now, uid, stalledSince)
}

// updateProfile updates in the limiter what the start of a pod is expected to take.
func (s *Starts) updateProfile(now time.Time, pod podwatch.Pod, t *throttle.Ticket) {
	s.setProfiles(now, map[string]throttle.Profile{pod.UID: s.profile(pod, t.Repeats() > 0)})
}

// profile returns what the start of a pod is expected to take, and how soon a probe may kill it. restart reports
// whether it is a start after a crash. Starts of other kinds do not count.
func (s *Starts) profile(pod podwatch.Pod, restart bool) throttle.Profile {
	known := throttle.Profile{Kind: learning.Kind(pod, restart), Patience: pod.Patience}
	if e := s.o.Memory.Expect(pod, restart); e.Basis != learning.None && e.Basis != learning.Namespace {
		known.Cost = &e.Cost
	}
	return known
}

// killed reports whether a probe may have killed a start that failed after this time. A start that crashed so late
// by itself is a minimum, too. A patience of a second or less does not tell a kill from a crash.
func killed(after, patience time.Duration) bool {
	return patience > time.Second && after >= patience/2
}

// followShadows measures the starts that continued at once in the mode Shadow. They begin and end independently of
// their tickets.
func (l *loop) followShadows(now time.Time) {
	shadows := l.s.shadowsUnderWay()
	for uid, sh := range shadows {
		if sh.ended == "" && !sh.settles.IsZero() && !now.Before(sh.settles) {
			l.s.review(now, uid, sh.ticket.Name())
		}
		switch c := l.courses[uid]; {
		case sh.ended != "":
			l.finish(now, sh.ticket, sh.ended)
			l.measured.Forget(uid)
		case c == nil:
			l.begin(now, sh.ticket)
		}
	}
	for uid := range l.courses {
		_, shadow := shadows[uid]
		if _, starting := l.starting[uid]; !shadow && !starting {
			l.forget(uid) // its pod is gone, and its ticket still waited
		}
	}
}

// shadowsUnderWay returns a copy of the starts that continued at once and whose tickets have not ended.
func (s *Starts) shadowsUnderWay() map[string]shadow {
	s.lock()
	defer s.unlock()
	all := map[string]shadow{}
	for uid, p := range s.ledger.pods {
		if p.shadow == nil {
			continue
		}
		if state, _ := p.shadow.ticket.Status(); state == throttle.Waiting || state == throttle.Starting {
			all[uid] = *p.shadow
		}
	}
	return all
}

// measure measures every start under way, and informs the limiter which starts make no progress while other pods
// wait. It returns the time of the next measurement, or zero if none is needed.
func (l *loop) measure(now time.Time) (next time.Time) {
	if len(l.starting) == 0 && len(l.courses) == 0 {
		return time.Time{}
	}
	due, next := l.measured.Begin(now)
	if !due {
		return next
	}
	uids := maps.Clone(l.starting)
	for uid := range l.courses {
		uids[uid] = nil // only the UID counts
	}
	after, waiting := l.s.noProgress()
	for uid := range uids {
		made, under := l.measureOne(now, uid)
		var use *adaptive.Use
		if used, known := l.measured.Use(uid); known && under {
			use = &used
		}
		since := time.Time{}
		if under && after >= 0 {
			since = l.measured.StalledSince(uid, after) // also while none waits, or it would miss progress
		}
		if !since.IsZero() && made.After(since) {
			since = made // to make a container is progress, such as the app after an init container that waited
		}
		if !waiting {
			since = time.Time{}
		}
		l.s.setProgress(now, uid, use, since)
	}
	return next
}

// noProgress returns after which time without progress a slot is lent, and whether a pod waits, perhaps for a policy.
func (s *Starts) noProgress() (after time.Duration, waiting bool) {
	s.lock()
	defer s.unlock()
	return s.ledger.limiter.Settings().NoProgressAfter, len(s.ledger.limiter.Waiting()) > 0
}

// measureOne measures one start. It returns what underWay does. A panic does not affect the others.
func (l *loop) measureOne(now time.Time, uid string) (made time.Time, under bool) {
	defer l.s.o.Observer.Caught("measure")
	name, target, made, under := l.s.underWay(uid)
	defer l.s.o.Observer.CaughtPod("measure", uid, name)
	if !under {
		return made, false
	}
	if blind := l.measured.Measure(now, uid, target); blind != nil {
		l.s.o.Observer.Report(observe.Unmeasured{Pod: observe.Pod{UID: uid, Name: name}, Why: blind})
	}
	return made, true
}

// underWay returns the name of a pod, what to measure of it, and when its last container was made, or zero if none was.
// under is false if the pod is unknown, or if, in the mode Shadow, its start is over and only keeps its slot.
func (s *Starts) underWay(uid string) (name string, target usage.Target, made time.Time, under bool) {
	s.lock()
	defer s.unlock()
	p := s.ledger.pods[uid]
	if p == nil {
		return "", usage.Target{}, time.Time{}, false
	}
	sh := p.inShadow()
	under = p.reported && (sh == nil || sh.endedAt.IsZero())
	return p.NamespacedName(), usage.Target{CgroupParent: p.cgroup, PIDs: p.pids()}, p.latest().made, under
}
