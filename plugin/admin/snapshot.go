package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// NewStatus returns a Status with what the limiter knows: limits, pace, what holds the next start, and the pods.
// ended is the result of [throttle.Limiter.Recent]. The caller sets the other fields.
func NewStatus(now time.Time, s throttle.Snapshot, ended []throttle.TicketView) Status {
	st := Status{
		About: About{
			Time:     now,
			Limits:   LimitsText(s.Settings),
			Adaptive: s.Adaptive,
			HeldBy:   newHeld(s.Held),
			Pace:     Pace{Seconds: seconds(s.Interval), Observed: s.IntervalObserved},

			MaxWaitSeconds: seconds(s.Settings.MaxWait),
		},
		Limit: s.Limit, Lent: s.Lent,
		Pulling: s.Pulling, PullingLimit: max(0, s.Settings.MaxPulling),
		Starting: newPods(now, s.Starting, s.IntervalObserved),
		Waiting:  []Pod{},
		Ended:    newPods(now, ended, s.IntervalObserved),
	}
	for _, p := range newPods(now, s.Waiting, s.IntervalObserved) {
		if p.Reason == reasons.Preparing {
			st.Preparing = append(st.Preparing, p)
		} else {
			st.Waiting = append(st.Waiting, p)
		}
	}
	slices.Reverse(st.Ended)
	return st
}

// Why explains the latest start of a pod. If several pods have this name, it takes the one that waits, then one that
// starts, then the one that ended last. The error about an unknown pod wraps [ErrUnknownPod].
func (s Status) Why(namespace, name string) (Why, error) {
	for _, p := range slices.Concat(s.Waiting, s.Preparing, s.Starting, s.Ended) {
		if p.Namespace != namespace || p.Name != name {
			continue
		}
		w := Why{Pod: p, Time: s.Time, PaceObserved: s.Pace.Observed}
		if p.State == throttle.Waiting {
			w.Of = len(s.Waiting) + len(s.Preparing)
		}
		return w, nil
	}
	return Why{}, fmt.Errorf("%s/%s: %w", namespace, name, ErrUnknownPod)
}

func newHeld(h throttle.Held) *Held {
	if h.Reason == "" {
		return nil
	}
	held := &Held{Reason: h.Reason, Detail: HeldText(h), Measured: h.Measured, Threshold: h.Threshold, Until: h.Until}
	held.Policy, held.Group = h.Policy.Policy, h.Policy.Group
	switch h.Reason {
	case reasons.CPULoad, reasons.IOLoad, reasons.LoadAverage, reasons.Pressure:
		held.Signal = h.Signal.String()
	}
	return held
}

func newPods(now time.Time, views []throttle.TicketView, observed bool) []Pod {
	pods := make([]Pod, 0, len(views))
	for _, v := range views {
		pods = append(pods, newPod(now, v, observed))
	}
	return pods
}

// newPod returns a pod. observed reports whether the pace was observed.
func newPod(now time.Time, v throttle.TicketView, observed bool) Pod {
	namespace, name, _ := strings.Cut(v.Name, "/")
	p := Pod{
		Namespace: namespace, Name: name, UID: v.UID, Priority: v.Priority,
		State: v.State, Reason: v.Reason, Admission: v.Admission, Present: v.Present, Slot: v.Slot,
		Joined: v.Arrived, Since: v.Since, Admitted: v.Admitted, Ended: v.Ended,
		WaitedSeconds: span(v.Since, v.Admitted, v.Ended, now),
		Restarts:      v.Repeats,
	}
	// An Adopted start may have been over before the daemon learned of it.
	if unknown := v.Admission == reasons.Adopted && !v.Ended.IsZero() && v.Reason != reasons.Stuck; !v.Admitted.IsZero() && !unknown {
		p.StartSeconds = span(v.Admitted, v.Ended, now)
	}
	if v.State == throttle.Waiting {
		p.Held, p.Place = newHeld(v.Held), v.Ahead+1
		p.ExpectedSeconds, p.ExpectedBasis = seconds(v.WaitLeft), basisOf(v.Held, observed)
	}
	if v.State == throttle.Starting {
		p.NoProgressSince = v.StalledSince
	}
	return p
}

func basisOf(h throttle.Held, observed bool) ExpectedBasis {
	switch {
	case h.Policy != throttle.GroupKey{}:
		return BasisPolicy
	case observed:
		return BasisObserved
	default:
		return BasisNone
	}
}

// span returns the time from a moment to the first end that is not zero, and never less than 0.
func span(from time.Time, ends ...time.Time) Seconds {
	return seconds(max(0, cmp.Or(ends...).Sub(from)))
}
