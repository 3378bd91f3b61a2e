package observe

import (
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// RuntimeLost says that the runtime closed the connection. It is an event on the node; package nri logs it.
type RuntimeLost struct{ Why error }

func (e RuntimeLost) report(o *Observer) {
	o.events.Node(corev1.EventTypeWarning, "RuntimeDisconnected",
		fmt.Sprintf("The connection to the container runtime is lost, pods start unpaced until it is back: %v", e.Why))
}

// RuntimeBack says that the runtime is connected again. It is an event on the node; package nri logs it.
type RuntimeBack struct{}

func (RuntimeBack) report(o *Observer) {
	o.events.Node(corev1.EventTypeNormal, "RuntimeConnected", "Connected to the container runtime again: pods are paced")
}

// RuntimeMakes is a sandbox or a container that the runtime makes, and what the daemon decided. It is logged at the
// level debug.
type RuntimeMakes struct {
	Pod
	Sandbox   string // ID
	Container string // ID of the container; empty: the runtime makes the sandbox
	Hook      bool   // the container waits in the gate
	Refused   bool
}

func (e RuntimeMakes) report(o *Observer) {
	log, what := e.log(o).WithFields(logrus.Fields{"sandbox_id": e.Sandbox, "refused": e.Refused}), "sandbox"
	if e.Container != "" {
		log, what = log.WithFields(logrus.Fields{"container_id": e.Container, "hook": e.Hook}), "container"
	}
	log.Debugf("pod %s: the runtime makes a %s", e.Name, what)
}

// HandlerCall is a call of an NRI handler. Its time is counted.
type HandlerCall struct {
	Name string // of the call, such as RunPodSandbox
	Took time.Duration
}

func (e HandlerCall) report(o *Observer) {
	o.metrics.handlers.WithLabelValues(e.Name).Observe(e.Took.Seconds())
}

// HandlerHold is a wait of an NRI handler on purpose. Its time is counted.
type HandlerHold struct{ Took time.Duration }

func (e HandlerHold) report(o *Observer) { o.metrics.handlerHold.Add(e.Took.Seconds()) }
