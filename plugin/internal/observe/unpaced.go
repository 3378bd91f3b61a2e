package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Reasons why a start goes on unpaced.
const (
	// NotAsked: its hook left by itself, or the daemon was not asked.
	NotAsked reasons.Reason = "NotAsked"
	// Panic: the handler that would have decided failed.
	Panic reasons.Reason = "Panic"
	// Shadow: the mode is Shadow, so the wait is only reported.
	Shadow reasons.Reason = "Shadow"
	// Off: the mode is Off, so there are no limits.
	Off reasons.Reason = "Off"
)

// unpacedTexts say it to people, after the pod's name.
var unpacedTexts = map[reasons.Reason]string{
	NotAsked: "a start went on without its turn: it is counted from now on",
	Panic:    "a handler failed: the pod goes on unpaced",
}

// Unpaced counts a start that goes on unpaced, and says so in the log and on the pod. The reason
// is NotAsked or Panic.
func (o *Observer) Unpaced(uid, name string, reason reasons.Reason) {
	text := unpacedTexts[reason]
	o.CountUnpaced(reason)
	o.PodLog(uid, name).WithField("reason", reason).Warnf("pod %s: %s", name, text)
	if o.pods.rare.allow(time.Now()) {
		o.events.Pod(uid, name, corev1.EventTypeWarning, eventUnpaced, string(reason)+": "+text)
	}
}

// CountUnpaced counts a start that goes on unpaced, and says nothing.
func (o *Observer) CountUnpaced(reason reasons.Reason) {
	o.metrics.unpaced.WithLabelValues(string(reason)).Inc()
}

// InShadow counts and logs a start that would wait for a reason, and goes on.
func (o *Observer) InShadow(uid, name string, reason reasons.Reason) {
	o.CountUnpaced(Shadow)
	o.PodLog(uid, name).WithField("reason", reason).Infof("pod %s would wait, and goes on: the mode is Shadow", name)
}
