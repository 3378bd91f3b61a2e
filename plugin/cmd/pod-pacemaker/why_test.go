package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// stories has one pod for each answer of why.
func stories() []admin.Why {
	pod := func(name string, state throttle.State, reason reasons.Reason) admin.Why {
		return admin.Why{Time: at(300), Pod: admin.Pod{
			Namespace: "default", Name: name, State: state, Reason: reason, Joined: at(0), WaitedSeconds: 14,
		}}
	}
	waiting := func(name string, held admin.Held, present bool, basis admin.ExpectedBasis) admin.Why {
		w := pod(name, throttle.Waiting, held.Reason)
		w.Held, w.Present, w.ExpectedBasis = &held, present, basis
		w.Place, w.Of, w.WaitedSeconds, w.ExpectedSeconds = 4, 9, 12, 20
		return w
	}
	admitted := func(name string, state throttle.State, admission, reason reasons.Reason) admin.Why {
		w := pod(name, state, reason)
		w.Admission, w.Admitted, w.StartSeconds, w.Slot = admission, at(14), 5, state == throttle.Starting
		if state != throttle.Starting {
			w.Ended = at(19)
		}
		return w
	}
	all := []admin.Why{
		waiting("at-the-gate", admin.Held{Reason: reasons.Concurrency, Detail: "2 of 2 starting"}, true, admin.BasisObserved),
		waiting("refused", admin.Held{Reason: reasons.Queued, Detail: "3 ahead"}, false, admin.BasisObserved),
		waiting("first-herd", admin.Held{Reason: reasons.Rate, Detail: "next start in 400ms, one per 1s"}, true, admin.BasisNone),
		admitted("starting", throttle.Starting, reasons.WithinLimits, reasons.WithinLimits),
		admitted("too-long", throttle.Starting, reasons.MaxWait, reasons.MaxWait),
		admitted("ready", throttle.Started, reasons.WithinLimits, reasons.Ready),
		admitted("settled", throttle.Started, reasons.WithinLimits, reasons.Settled),
		admitted("inferred", throttle.Started, reasons.MaxWait, reasons.Inferred),
		admitted("crashing", throttle.Started, reasons.WithinLimits, reasons.CrashLoop),
		admitted("exited", throttle.Started, reasons.SlotLent, reasons.Exited),
		admitted("failed", throttle.Started, reasons.WithinLimits, reasons.Failed),
		admitted("stuck", throttle.Started, reasons.WithinLimits, reasons.Stuck),
		admitted("completed", throttle.Started, "", reasons.Completed),
		admitted("deleted-early", throttle.Gone, reasons.WithinLimits, reasons.Deleted),
	}
	exempt := admitted("exempt", throttle.Starting, reasons.Exempt, reasons.Exempt)
	exempt.Slot, exempt.WaitedSeconds = false, 0
	adopted := admitted("adopted", throttle.Started, reasons.Adopted, reasons.Ready)
	adopted.WaitedSeconds, adopted.StartSeconds = 0, 0
	gone := pod("gave-up", throttle.Gone, reasons.Abandoned)
	gone.Ended = at(290)
	done := pod("over-before", throttle.Started, reasons.Completed)
	done.Ended = at(290)
	shadow := waiting("in-shadow", admin.Held{Reason: reasons.Concurrency, Detail: "2 of 2 starting"}, true, admin.BasisObserved)
	shadow.Shadow = true
	inRoom := waiting("in-room", admin.Held{Reason: reasons.Concurrency, Detail: "2 of 2 starting"}, false, admin.BasisObserved)
	inRoom.InRoom = true
	offender := waiting("offender", admin.Held{Reason: reasons.Queued, Detail: "3 ahead"}, true, admin.BasisObserved)
	offender.Restarts = 2
	pulls := waiting("pulls-images", admin.Held{Reason: reasons.Preparing, Detail: "kubelet pulls its images, or cannot make its first container yet"}, false, admin.BasisObserved)
	pulls.Since = at(40)
	costly := waiting("costly", admin.Held{Reason: reasons.Concurrency, Detail: "2 of 2 starting"}, true, admin.BasisObserved)
	costly.Cost = knownCost
	newcomer := admitted("newcomer", throttle.Starting, reasons.WithinLimits, reasons.WithinLimits)
	newcomer.Cost = &admin.Cost{Basis: "None", KilledAfterSeconds: 30}
	lent := admitted("lent", throttle.Starting, reasons.SlotLent, reasons.SlotLent)
	stalled := admitted("stalled", throttle.Starting, reasons.WithinLimits, reasons.WithinLimits)
	stalled.NoProgressSince = at(280)
	return append(all, offender, lent, stalled, exempt, gone, done, shadow, inRoom, pulls, costly, newcomer, adopted)
}

// storyStatus is the status of a node with the pods of all stories. 9 of them wait.
func storyStatus() admin.Status {
	s := admin.Status{About: admin.About{Time: at(300)}, Waiting: make([]admin.Pod, 1)}
	for _, w := range stories() {
		switch w.State {
		case throttle.Waiting:
			s.Waiting = append(s.Waiting, w.Pod)
		case throttle.Starting:
			s.Starting = append(s.Starting, w.Pod)
		default:
			s.Ended = append(s.Ended, w.Pod)
		}
	}
	return s
}

func TestWhyIsOneLine(t *testing.T) {
	t.Parallel()
	dir := serve(t, &fixed{status: storyStatus()})
	var all strings.Builder
	for _, w := range stories() {
		stdout := says(t, "why", "default/"+w.Name, "--run-dir", dir)
		assert.Equal(t, 1, strings.Count(stdout, "\n"))
		all.WriteString(stdout)
	}
	assertGolden(t, "why", all.String())
}

func TestWhyAsJSON(t *testing.T) {
	t.Parallel()
	want := stories()[0]
	dir := serve(t, &fixed{status: storyStatus()})
	stdout := says(t, "why", "default/"+want.Name, "-o", "json", "--run-dir", dir)
	var got admin.Why
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, want, got)
}

func TestWhyOfAnUnknownPod(t *testing.T) {
	t.Parallel()
	stderr := fails(t, exitFailure, "why", "default/absent", "--run-dir", serve(t, &fixed{}))
	assert.Equal(t, "pod-pacemaker: default/absent: not known on this node: it neither waits nor starts, and did neither lately\n", stderr)
}
