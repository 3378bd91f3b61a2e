package main

import (
	"fmt"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// whyLine returns the answer as one line.
func whyLine(w admin.Why) string {
	text := line(podName(w.Pod) + ": " + story(w) + costStory(w.Cost))
	if w.Shadow {
		text += "; mode Shadow: the pod was not held"
	}
	return text
}

func story(w admin.Why) string {
	switch w.State {
	case throttle.Waiting:
		return waitingStory(w)
	case throttle.Starting:
		return fmt.Sprintf("starting for %s %s, %s", human(w.StartSeconds.Duration()), afterWaiting(w.Pod), slotStory(w))
	}
	if w.Admitted.IsZero() {
		return fmt.Sprintf("did not start after waiting %s; %s %s ago", human(w.WaitedSeconds.Duration()), endText(w.Pod), human(w.Time.Sub(w.Ended)))
	}
	text := fmt.Sprintf("started %s ago %s; %s", human(w.Time.Sub(w.Admitted)), afterWaiting(w.Pod), endText(w.Pod))
	if w.StartSeconds > 0 {
		text += " after " + human(w.StartSeconds.Duration())
	}
	return text
}

// slotStory returns whether a start holds a slot, and whether it makes progress.
func slotStory(w admin.Why) string {
	text := "holds a slot"
	switch {
	case !w.Slot:
		text = "without a slot"
	case w.Admission == reasons.SlotLent:
		text = "lent a slot: all others that hold one make no progress"
	}
	if !w.NoProgressSince.IsZero() {
		text += fmt.Sprintf(", has made no progress for %s", human(w.Time.Sub(w.NoProgressSince)))
	}
	return text
}

func waitingStory(w admin.Why) string {
	if w.Reason == reasons.Preparing {
		return fmt.Sprintf("not waiting for pod-pacemaker, but preparing for %s, place %d of %d: %s",
			human(w.Since.Sub(w.Joined)), w.Place, w.Of, w.Held.Detail)
	}
	text := fmt.Sprintf("waiting %s, place %d of %d: %s", human(w.WaitedSeconds.Duration()), w.Place, w.Of, waitsFor(w.Pod))
	if w.Restarts > 0 {
		text += fmt.Sprintf("; its container exited %s before, so first starts are ahead of it", plural(w.Restarts, "time"))
	}
	switch {
	case w.InRoom:
		text += "; in the waiting room"
	case !w.Present:
		text += "; refused, kubelet will retry it"
	}
	if w.ExpectedSeconds > 0 {
		text += fmt.Sprintf("; expected in about %s (%s)", human(w.ExpectedSeconds.Duration()), basisText(w.ExpectedBasis))
	}
	return text
}

// waitsFor returns the reason and the measure behind it.
func waitsFor(p admin.Pod) string {
	if p.Held == nil || p.Held.Detail == "" {
		return string(p.Reason)
	}
	return fmt.Sprintf("%s: %s", p.Reason, p.Held.Detail)
}

// basisText returns what an estimate is based on.
func basisText(b admin.ExpectedBasis) string {
	if b == admin.BasisNone {
		return "a guess: no start has ended yet"
	}
	return string(b)
}

func afterWaiting(p admin.Pod) string {
	text := "without waiting"
	if p.WaitedSeconds > 0 {
		text = "after waiting " + human(p.WaitedSeconds.Duration())
	}
	switch p.Admission {
	case "":
		return text
	case reasons.MaxWait:
		return fmt.Sprintf("%s (%s, over the limit)", text, p.Admission)
	}
	return fmt.Sprintf("%s (%s)", text, p.Admission)
}
