package observe

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

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
