package observe

import (
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
)

// RuntimeLost says that the runtime closed the connection. It is an event on the node; package nri logs it.
type RuntimeLost struct{ Why error }

func (e RuntimeLost) report(o *Observer) {
	o.onNode(corev1.EventTypeWarning, "RuntimeDisconnected",
		fmt.Sprintf("The connection to the container runtime is lost, pods start unpaced until it is back: %v", e.Why))
}

// RuntimeBack says that the runtime is connected again. It is an event on the node; package nri logs it.
type RuntimeBack struct{}

func (RuntimeBack) report(o *Observer) {
	o.onNode(corev1.EventTypeNormal, "RuntimeConnected", "Connected to the container runtime again: pods are paced")
}

// RegistrationDelayed says that the daemon does not register with the runtime for now. It is an event on the node, with
// the delay as its reason; package nri logs it.
type RegistrationDelayed struct {
	Delay string
	Why   error
}

func (e RegistrationDelayed) report(o *Observer) {
	o.onNode(corev1.EventTypeWarning, e.Delay, e.Why.Error())
}

// RegistersDuringStop says that the daemon registers while the runtime is stopping a container, which blocks all pods of
// the node until the container has stopped. It is counted; package nri logs it.
type RegistersDuringStop struct{}

func (RegistersDuringStop) report(o *Observer) { o.metrics.duringStop.Inc() }

// LargeEnvironment says that the runtime makes a sandbox or container with so much environment and other settings that it
// could not list several such to the daemon. It is logged, counted, and an event on the pod.
type LargeEnvironment struct {
	Made
	Bytes   int
	Refused bool
}

func (e LargeEnvironment) report(o *Observer) {
	o.metrics.large.Inc()
	text := fmt.Sprintf("the %s has %d KiB of environment and other settings; containerd may end when it lists several of such a size to a plugin, so the daemon does not register beside them", e.what(), e.Bytes>>10)
	if e.Refused {
		text += "; it is refused"
	}
	e.log(o).WithField("bytes", e.Bytes).Warnf("pod %s: %s", e.Name, text)
	if o.pods.rare.allow(time.Now()) {
		o.events.Pod(e.UID, e.Name, corev1.EventTypeWarning, eventLarge, strings.ToUpper(text[:1])+text[1:])
	}
}

// Made is a sandbox or a container that the runtime makes. As an event, it is one that does not wait now, and is logged
// at the level debug. Waits and Refusal are events of the others.
type Made struct {
	Pod
	Sandbox   string // ID
	Container string // ID; empty if the runtime makes the sandbox
}

// log returns the log of o, with fields that name the pod, the sandbox and the container.
func (e Made) log(o *Observer) logrus.FieldLogger {
	log := e.Pod.log(o).WithField("sandbox_id", e.Sandbox)
	if e.Container != "" {
		log = log.WithField("container_id", e.Container)
	}
	return log
}

// what returns what the runtime makes, in one word.
func (e Made) what() string {
	if e.Container != "" {
		return "container"
	}
	return "sandbox"
}

func (e Made) report(o *Observer) {
	e.log(o).Debugf("pod %s: the runtime makes a %s, which does not wait", e.Name, e.what())
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
