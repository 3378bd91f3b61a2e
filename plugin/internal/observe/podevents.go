package observe

import (
	"cmp"
	"fmt"
	"slices"
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
	eventLarge    = "LargeEnvironment"
	eventLent     = string(reasons.SlotLent)
	eventExpired  = string(reasons.GateExpired)
	eventNever    = string(reasons.Unadmittable)
)

// Limits of the events on pods. An API server serves thousands of nodes, and has the least capacity to spare when a
// herd starts everywhere at once.
const (
	shortWait  = 5 * time.Second // a shorter wait gets no event
	writeAgain = time.Minute     // shortest time between two events of a wait; the second needs another reason
	lookEvery  = 5 * time.Second // time between two looks at the pods that wait
)

// podEvents chooses which events are written on pods; the log has all of them. An event that exceeds its budget is
// dropped: pods that wait are looked at again, and if the same goes wrong in many pods, a few events are enough. A pod
// that can never be admitted, because it alone exceeds a limit of a policy, gets an event at the next look. Make it
// with newPodEvents. It is not safe for concurrent use.
type podEvents struct {
	// normal limits the events on how waits go, rare those on what is unusual, so that neither class uses up the
	// budget of the other.
	normal, rare *eventBudget
	delay        time.Duration           // of the first event of a wait, for this node
	written      map[string]writtenEvent // the last event of each pod that waits, by UID
	expired      map[string]bool         // UIDs of pods that wait and have the event that a wait in the gate ran out
	last         time.Time               // when the pods were looked at last
}

// expiredText is the event on a pod whose wait in the gate ran out.
const expiredText = "The wait in the gate ended without a turn, and the pod keeps its place. kubelet shows RunContainerError, counts a restart that never ran, " +
	"and tries again after a back-off. The waiting room (--cni) or a longer runtimeRequestTimeout of kubelet avoids that"

// writtenEvent is the last event on a pod that waits.
type writtenEvent struct {
	reason reasons.Reason
	at     time.Time
}

// inClusterOf sets the budgets of a node in a cluster of this many nodes.
func (s *podEvents) inClusterOf(nodes int) {
	s.delay = s.normal.inClusterOf(nodes)
	s.rare.inClusterOf(nodes)
}

func newPodEvents() *podEvents {
	return &podEvents{normal: newEventBudget(), rare: newEventBudget(), written: map[string]writtenEvent{}, expired: map[string]bool{}}
}

// happened writes the event on a pod that reports an event of the limiter, if it is to be reported.
func (s *podEvents) happened(n EventWriter, of Pod, e throttle.Event) {
	uid := of.UID
	_, waited := s.written[uid]
	s.forget(of, e)
	took := e.Took.Round(100 * time.Millisecond)
	write := func(budget *eventBudget, kind, reason, format string, args ...any) {
		if budget.allow(e.Time) {
			n.Pod(uid, of.Name, kind, reason, fmt.Sprintf(format, args...))
		}
	}
	switch {
	case e.State == throttle.Starting && e.Reason == reasons.SlotLent:
		write(s.rare, corev1.EventTypeNormal, eventLent, "Got a slot beyond the limit after %s: the pods within the limit make no progress, and may depend on this pod", took)
	case e.State == throttle.Starting && (e.Reason == reasons.MaxWait || e.Reason == reasons.ByHand):
		write(s.rare, corev1.EventTypeNormal, eventAdmitted, "Admitted over the limit after %s: %s", took, e.Reason)
	case e.State == throttle.Starting && waited:
		write(s.normal, corev1.EventTypeNormal, eventAdmitted, "Admitted after %s: %s", took, e.Reason)
	case e.Reason == reasons.GateExpired && !s.expired[uid]:
		s.expired[uid] = true
		write(s.rare, corev1.EventTypeWarning, eventExpired, expiredText)
	case e.Reason == reasons.Stuck:
		write(s.rare, corev1.EventTypeWarning, eventStuck, "Not ready %s after it was admitted; the start no longer counts, and other pods may start", took)
	}
}

// forget forgets the last event of a pod that no longer waits.
func (s *podEvents) forget(of Pod, e throttle.Event) {
	if e.State != throttle.Waiting {
		delete(s.written, of.UID)
		delete(s.expired, of.UID)
	}
}

// look writes events on pods that have waited for a while and have no event yet, or wait for another reason than their
// last event names: first on pods that can never start, then in the order of the queue. It returns when to look again,
// or zero if no event is due before a reason changes.
func (s *podEvents) look(now time.Time, n EventWriter, snapshot throttle.Snapshot) (next time.Time) {
	waiting := snapshot.Waiting
	for _, v := range waiting {
		if due := s.due(v); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if next.IsZero() {
		return time.Time{}
	}
	if again := s.last.Add(lookEvery); next.Before(again) {
		next = again
	}
	if now.Before(next) {
		return next
	}
	s.last = now
	waiting = slices.Clone(waiting)
	slices.SortStableFunc(waiting, neverFirst) // behind a herd, their events would come too late
	for _, v := range waiting {
		if due := s.due(v); due.IsZero() || now.Before(due) {
			continue
		}
		if !s.normal.allow(now) {
			break
		}
		s.written[v.UID] = writtenEvent{reason: v.Reason, at: now}
		if v.Reason == reasons.Unadmittable {
			n.Pod(v.UID, v.Name, corev1.EventTypeWarning, eventNever, "Cannot start: this pod alone exceeds a limit of a StartPolicy, and waiting does not help: "+admin.HeldText(v.Held))
			continue
		}
		n.Pod(v.UID, v.Name, corev1.EventTypeNormal, eventWaiting, waitingText(v, len(waiting), snapshot.IntervalObserved))
	}
	return now.Add(lookEvery)
}

// neverFirst compares pods that wait: those that can never start come first.
func neverFirst(a, b throttle.TicketView) int {
	return cmp.Compare(oneIf(b.Reason == reasons.Unadmittable), oneIf(a.Reason == reasons.Unadmittable))
}

// due returns when an event on a pod that waits is due, or zero if its reason has to change first.
func (s *podEvents) due(v throttle.TicketView) time.Time {
	last, has := s.written[v.UID]
	switch {
	case v.Reason == reasons.Preparing || has && last.reason == v.Reason:
		return time.Time{}
	case has:
		return last.at.Add(writeAgain)
	case v.Reason == reasons.Unadmittable:
		return v.Since
	default:
		return v.Since.Add(shortWait + s.delay)
	}
}

// waitingText describes what a pod waits for, at which place in the queue, and the measured values.
func waitingText(v throttle.TicketView, of int, observed bool) string {
	text := fmt.Sprintf("Waits for its turn to start, place %d of %d: %s", v.Ahead+1, max(of, v.Ahead+1), HeldBy(v.Held))
	if observed && (v.Held.Policy == throttle.GroupKey{}) && v.WaitLeft > 0 {
		text += fmt.Sprintf("; expected in about %s", v.WaitLeft.Round(time.Second))
	}
	return text
}
