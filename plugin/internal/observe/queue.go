package observe

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Waits is a decision that a start waits. It is logged: the first of a wait at the level info, the others at the level
// debug.
type Waits struct {
	Made      // the container whose hook waits, or the sandbox before which the pod waits in the waiting room
	Decision  throttle.Decision
	Since, At time.Time // when the pod began to wait, and when that was decided
}

func (e Waits) report(o *Observer) {
	text := "waits in the gate"
	if e.Container == "" {
		text = "waits in the waiting room"
	}
	e.logWait(o, e.log(o), text)
}

// logWait logs the decision. text follows the name of the pod, and its place and what holds it follow text.
func (e Waits) logWait(o *Observer, log logrus.FieldLogger, text string) {
	d := e.Decision
	level, since := logrus.DebugLevel, e.Since.UnixNano()
	if before, _ := o.waits.Swap(e.UID, since); before != since {
		level = logrus.InfoLevel
	}
	if d.Ahead > 0 {
		text += fmt.Sprintf(", place %d", d.Ahead+1)
	}
	log.WithFields(logrus.Fields{
		"reason": d.Reason, "held": admin.HeldText(d.Held), "place": d.Ahead + 1, "wait_ms": e.At.Sub(e.Since).Milliseconds(),
	}).Logf(level, "pod %s %s: %s", e.Name, text, HeldBy(d.Held))
}

// HeldBy returns the reason for which a start is held, with what was measured, for example "Concurrency (2 of 2 starting)".
func HeldBy(h throttle.Held) string {
	if measured := admin.HeldText(h); measured != "" {
		return fmt.Sprintf("%s (%s)", h.Reason, measured)
	}
	return string(h.Reason)
}

// Refusal is a sandbox or a container that is refused, so that its pod waits. It is counted, with the CPU time that it
// costs, and logged as Waits is.
type Refusal struct {
	Waits               // of the container or the sandbox that is refused
	CPU   time.Duration // that the refusal costs the node, by an estimate
	Final bool          // kubelet does not try again
}

func (e Refusal) report(o *Observer) {
	at, until := e.what(), "until kubelet tries again"
	if e.Final {
		until = "and does not start"
	}
	o.metrics.refusals.WithLabelValues(at, string(e.Decision.Reason)).Inc()
	o.metrics.refusalCPU.Add(e.CPU.Seconds())
	e.logWait(o, e.log(o).WithField("at", at), "is refused at the "+at+" "+until)
}

// Reasons why a process left the waiting room, besides the reasons of its answer.
const (
	// HungUp: it ended by itself, because the folder of the CNI configurations changed or the runtime ended it.
	HungUp reasons.Reason = "HungUp"
)

// LeftRoom is a process that left the waiting room. It is counted.
type LeftRoom struct {
	Reason reasons.Reason // of its answer, or HungUp
	Waited time.Duration  // in the room
}

func (e LeftRoom) report(o *Observer) {
	o.metrics.roomWaits.WithLabelValues(string(e.Reason)).Observe(e.Waited.Seconds())
}

// GateGivenUp says that no container waits in the gate for a while, because hooks may not work. It is logged, and an
// event on the node.
type GateGivenUp struct {
	Pod              // of the container that showed it, without the UID
	Container string // its ID
	Cause     string
}

func (e GateGivenUp) report(o *Observer) {
	n := PodName(e.Name)
	o.log.WithFields(logrus.Fields{"no_gate": e.Cause, "container_id": e.Container, "pod_namespace": n.Namespace, "pod_name": n.Name}).
		Warnf("no container waits in the gate for a while, and containers are refused instead: a container of pod %s failed to use it: %s", e.Name, e.Cause)
	o.onNode(corev1.EventTypeWarning, "GateGivenUp", "Containers are refused for a while instead of waiting in the gate: "+e.Cause)
}
