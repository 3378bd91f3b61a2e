package throttle

import "github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"

// State is where a ticket stands in the life of a start.
type State string

// The states of a ticket.
const (
	Waiting  State = "Waiting"
	Starting State = "Starting"
	Started  State = "Started"
	Gone     State = "Gone"
)

// tellsPace tells whether a start that ended so says how long starts take. One that
// broke off does not.
func tellsPace(r reasons.Reason) bool { return tellsReady(r) || r == reasons.Completed }

// tellsReady tells whether a start that ended so has made its pod ready.
func tellsReady(r reasons.Reason) bool {
	return r == reasons.Ready || r == reasons.Settled || r == reasons.Inferred
}

// breaksOff tells whether a start that ended so was ended by its containers, and not
// by anybody who wants the pod no more.
func breaksOff(r reasons.Reason) bool {
	return r == reasons.Exited || r == reasons.CrashLoop || r == reasons.Failed
}

// endState tells where an end leads: a start that was deleted or given up is
// Gone, any other is Started.
func endState(r reasons.Reason) State {
	switch r {
	case reasons.Deleted, reasons.Abandoned, reasons.SandboxGone:
		return Gone
	default:
		return Started
	}
}
