package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Reasons why a start goes on unpaced.
const (
	// unpacedNotAsked: its hook left by itself, or nobody was asked.
	unpacedNotAsked throttle.Reason = "NotAsked"
	// unpacedPanic: the handler that would have decided failed.
	unpacedPanic throttle.Reason = "Panic"
	// unpacedShadow: the mode is Shadow, so the wait is only reported.
	unpacedShadow throttle.Reason = "Shadow"
	// unpacedOff: the mode is Off, so there are no limits.
	unpacedOff throttle.Reason = "Off"
)

// unpacedTexts say it to people, after the pod's name.
var unpacedTexts = map[throttle.Reason]string{
	unpacedNotAsked: "a start went on without its turn: it is counted from now on",
	unpacedPanic:    "a handler failed: the pod goes on unpaced",
}

// unpaced counts a start that goes on unpaced, and says so in the log and on the pod.
func (p *pacer) unpaced(uid, title string, reason throttle.Reason) {
	text := unpacedTexts[reason]
	p.metrics.unpaced.WithLabelValues(string(reason)).Inc()
	p.podLog(uid, title).WithField("reason", reason).Warnf("pod %s: %s", title, text)
	if p.podEvents.rare.allow(time.Now()) {
		p.notices.pod(uid, title, corev1.EventTypeWarning, eventUnpaced, string(reason)+": "+text)
	}
}
