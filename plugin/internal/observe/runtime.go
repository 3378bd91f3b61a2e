package observe

import (
	"time"

	"github.com/sirupsen/logrus"
)

// RuntimeMakes is a sandbox or a container that the runtime makes, and what the daemon decided. It is logged at the level
// debug.
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

// HandlerWait is a wait of an NRI handler on purpose. Its time is counted.
type HandlerWait struct{ Took time.Duration }

func (e HandlerWait) report(o *Observer) { o.metrics.handlerWait.Add(e.Took.Seconds()) }
