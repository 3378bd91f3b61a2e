package observe

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Shutdown says that the node is being shut down, or is not after all. It is logged.
type Shutdown struct {
	Begins  bool
	Waiting int // pods that wait; only logged if the shutdown begins
}

func (e Shutdown) report(o *Observer) {
	if e.Begins {
		o.log.WithField("waiting", e.Waiting).Warn("the node is being shut down: no pod waits in the gate any more, and pods that would have to wait are refused")
	} else {
		o.log.Info("the node is not shut down after all: pods wait as before")
	}
}

// NodePressure says that the node is short of memory, disk or process IDs, or no longer is. It is logged.
type NodePressure struct{ Begins bool }

func (e NodePressure) report(o *Observer) {
	if e.Begins {
		o.log.Warn("the node is short of memory, disk or process IDs: no pod waits in the gate any more, so that kubelet can evict it; pods are refused until this is over")
	} else {
		o.log.Info("the node is no longer short of memory, disk or process IDs: pods may wait in the gate again")
	}
}

// SignalBlind says that a signal that a limit needs cannot be measured, or is measured again. It is logged, and an
// event on the node.
type SignalBlind struct {
	Signal throttle.Signal
	Effect string // on the limit
	Why    error  // why it is not measured; nil if it is measured again
}

func (e SignalBlind) report(o *Observer) {
	log := o.log.WithField("signal", e.Signal.String())
	if e.Why == nil {
		log.Infof("the signal %s is measured again: %s", e.Signal, e.Effect)
		o.onNode(corev1.EventTypeNormal, "SignalMeasured", "The signal "+e.Signal.String()+" is measured again, "+e.Effect)
		return
	}
	log.WithError(e.Why).Warnf("the signal %s cannot be measured: %s", e.Signal, e.Effect)
	o.onNode(corev1.EventTypeWarning, "SignalBlind", "The signal "+e.Signal.String()+" cannot be measured, "+e.Effect+": "+e.Why.Error())
}

// AfterState is how far the pods of an entry of startAfter are.
type AfterState string

// The states of an entry.
const (
	AfterWaiting  AfterState = "Waiting"  // none is ready, and other pods wait for them
	AfterReady    AfterState = "Ready"    // one is ready, or was once
	AfterAbsent   AfterState = "Absent"   // none is on the node
	AfterTimedOut AfterState = "TimedOut" // none is ready, and other pods wait no longer
)

// StartAfter says that the state of an entry of startAfter has changed. It is logged, and a time-out is an event on the
// node.
type StartAfter struct {
	For   string // the pods
	State AfterState
	Took  time.Duration // since pods wait for them
}

func (e StartAfter) report(o *Observer) {
	log, took := o.log.WithFields(logrus.Fields{"start_after": e.For, "state": string(e.State)}), e.Took.Round(100*time.Millisecond)
	switch e.State {
	case AfterWaiting:
		log.Infof("StartAfter: %s is not ready: pods wait for it", e.For)
	case AfterReady:
		log.Infof("StartAfter: %s is ready after %s", e.For, took)
	case AfterAbsent:
		log.Infof("StartAfter: %s has no pod on this node, and holds no pod", e.For)
	case AfterTimedOut:
		log.Warnf("StartAfter: %s is not ready after %s: pods start without it", e.For, took)
		o.onNode(corev1.EventTypeWarning, "StartAfterTimedOut", fmt.Sprintf("%s is not ready after %s: pods start without it", e.For, took))
	}
}
