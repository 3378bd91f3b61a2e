package observe

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Reasons of the events on pods.
const (
	eventWaiting  = "WaitingToStart"
	eventAdmitted = "StartAdmitted"
	eventStuck    = "StartStuck"
	eventUnpaced  = "StartUnpaced"
	eventLent     = string(reasons.SlotLent)
	eventExpired  = string(reasons.GateExpired)
	eventNever    = string(reasons.Unadmittable)
)

// Bounds of the events on pods. An API server serves thousands of nodes, and a herd
// that starts everywhere at once is when it has least to spare.
const (
	worthTelling = 5 * time.Second // a shorter wait is not worth an event
	tellAgain    = time.Minute     // at the earliest, and only when the reason has changed
	lookEvery    = 5 * time.Second // at those that wait
)

// podEvents chooses what becomes an event on a pod: the log tells all. An event that
// exceeds the bounds is not written later: those that wait are looked at again, and of
// what goes wrong in many pods at once, a few say enough. Of a pod that can never be
// admitted, because it alone exceeds a limit of a policy that no wait passes, an event
// says so at the next look. Made by newPodEvents; used by one goroutine alone, but
// for Unpaced.
type podEvents struct {
	// course bounds the events that say how any pod's wait goes, rare those that say
	// what is out of the ordinary: neither takes what the other needs.
	course, rare *eventBudget
	told         map[string]toldWait // by UID, of those that waited at one of the last two looks
	last         time.Time           // look
}

// toldWait is what the events of a waiting pod have said last.
type toldWait struct {
	reason reasons.Reason
	at     time.Time
	seen   time.Time // the last look at which it waited
}

func newPodEvents() *podEvents {
	return &podEvents{course: newEventBudget(), rare: newEventBudget(), told: map[string]toldWait{}}
}

// inClusterOf sets the bounds to those of a node in a cluster of this many nodes; 0: the number is not known.
func (s *podEvents) inClusterOf(nodes int) {
	s.course.inClusterOf(nodes)
	s.rare.inClusterOf(nodes)
}

// happened writes the event on a pod that says what happened to its ticket, if any.
func (s *podEvents) happened(n Events, e throttle.Event) {
	uid := e.Ticket.UID()
	_, waited := s.told[uid]
	if e.State != throttle.Waiting {
		delete(s.told, uid)
	}
	took := e.Took.Round(100 * time.Millisecond)
	write := func(bound *eventBudget, kind, reason, format string, args ...any) {
		if bound.allow(e.Time) {
			n.Pod(uid, e.Ticket.Name(), kind, reason, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case e.State == throttle.Starting && e.Reason == reasons.SlotLent:
		write(s.rare, corev1.EventTypeNormal, eventLent, "Lent a slot after %s: the pods that hold all slots make no progress, maybe they wait for this one", took)
	case e.State == throttle.Starting && overLimit(e.Reason):
		write(s.rare, corev1.EventTypeNormal, eventAdmitted, "Admitted over the limit after %s: %s", took, e.Reason)
	case e.State == throttle.Starting && waited:
		write(s.course, corev1.EventTypeNormal, eventAdmitted, "Admitted after %s: %s", took, e.Reason)
	case e.Reason == reasons.GateExpired:
		write(s.rare, corev1.EventTypeWarning, eventExpired, "The wait in the gate ended without a turn; kubelet tries again, the pod keeps its place")
	case e.Reason == reasons.Stuck:
		write(s.rare, corev1.EventTypeWarning, eventStuck, "Not ready %s after it was admitted; the start no longer counts and others go on", took)
	}
}

// overLimit reports whether an admission of this reason is over the limit.
func overLimit(r reasons.Reason) bool { return r == reasons.MaxWait || r == reasons.GateDeadline }

// look writes events on those that have waited for a while and were not told yet, or
// wait for another reason now, the first in line first. It gives the time of the next
// look; zero: no pod waits.
func (s *podEvents) look(now time.Time, n Events, l *throttle.Limiter) (next time.Time) {
	if _, waiting := l.Busy(now); !waiting {
		return time.Time{}
	}
	if next := s.last.Add(lookEvery); now.Before(next) {
		return next
	}
	snapshot := l.Snapshot(now)
	waiting := snapshot.Waiting
	s.keep(now, waiting)
	for _, v := range waiting {
		told, before := s.told[v.UID]
		never := v.Reason == reasons.Unadmittable
		if (now.Sub(v.Arrived) < worthTelling+s.course.late && !never) || (before && (told.reason == v.Reason || now.Sub(told.at) < tellAgain)) {
			continue
		}
		if !s.course.allow(now) {
			break
		}
		s.told[v.UID] = toldWait{reason: v.Reason, at: now, seen: now}
		if never {
			n.Pod(v.UID, v.Name, corev1.EventTypeWarning, eventNever, "It alone exceeds a limit that no wait passes: "+admin.HeldText(v.Held))
			continue
		}
		n.Pod(v.UID, v.Name, corev1.EventTypeNormal, eventWaiting, waitingText(v, len(waiting), snapshot.PaceObserved))
	}
	return now.Add(lookEvery)
}

// keep forgets what was said of all but those that wait. What was said of one whose wait
// has just ended is known for another look: its admission is told meanwhile.
func (s *podEvents) keep(now time.Time, waiting []throttle.TicketView) {
	for _, v := range waiting {
		if told, ok := s.told[v.UID]; ok {
			told.seen = now
			s.told[v.UID] = told
		}
	}
	maps.DeleteFunc(s.told, func(_ string, t toldWait) bool { return t.seen.Before(s.last) })
	s.last = now
}

// waitingText says what a pod waits for, at which place, and what is measured.
func waitingText(v throttle.TicketView, of int, observed bool) string {
	text := fmt.Sprintf("Waits for its turn to start, place %d of %d: %s", v.Ahead+1, max(of, v.Ahead+1), v.Reason)
	if measured := admin.HeldText(v.Held); measured != "" {
		text += " (" + measured + ")"
	}
	if observed && (v.Held.Policy == throttle.GroupKey{}) && v.Expected > 0 {
		text += fmt.Sprintf("; expected in about %s", v.Expected.Round(time.Second))
	}
	return text
}
