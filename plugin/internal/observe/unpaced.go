package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Reasons why a start is unpaced.
const (
	// NotAsked: the hook started its container by itself, or the daemon was not asked.
	NotAsked reasons.Reason = "NotAsked"
	// Panic: the handler panicked before it made a decision.
	Panic reasons.Reason = "Panic"
	// Shadow: the mode is Shadow, so the wait is only reported.
	Shadow reasons.Reason = "Shadow"
	// Off: the mode is Off, so there are no limits.
	Off reasons.Reason = "Off"
)

// unpacedTexts explain the reasons to people. They follow the name of the pod.
var unpacedTexts = map[reasons.Reason]string{
	NotAsked: "it started without a decision of the daemon; its start counts from now on",
	Panic:    "a handler of the daemon failed: the pod starts unpaced",
}

// Unpaced counts an unpaced start, logs it, and writes an event on the pod. name is "namespace/name"; the reason is
// NotAsked or Panic.
func (o *Observer) Unpaced(uid, name string, reason reasons.Reason) {
	text := unpacedTexts[reason]
	o.CountUnpaced(reason)
	o.PodLog(uid, name).WithField("reason", reason).Warnf("pod %s: %s", name, text)
	if o.pods.rare.allow(time.Now()) {
		o.events.Pod(uid, name, corev1.EventTypeWarning, eventUnpaced, string(reason)+": "+text)
	}
}

// CountUnpaced counts an unpaced start, without a log line or an event.
func (o *Observer) CountUnpaced(reason reasons.Reason) {
	o.metrics.unpaced.WithLabelValues(string(reason)).Inc()
}

// InShadow counts and logs a start that would have to wait, but continues because the mode is Shadow. reason is why it
// would wait; HappenedInShadow reports how that ends.
func (o *Observer) InShadow(uid, name string, reason reasons.Reason) {
	o.CountUnpaced(Shadow)
	o.PodLog(uid, name).WithField("reason", reason).Infof("pod %s would wait, but continues: the mode is Shadow", name)
}
