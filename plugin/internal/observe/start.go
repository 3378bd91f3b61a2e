package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// StartEvent is an event of the limiter about a start. It is logged. Admissions, ends and waits that expired are
// counted. podEvents chooses whether an event is written on the pod.
type StartEvent struct {
	Pod
	throttle.Event        // without the Ticket
	Container      string // ID of the pod's container that was made last; empty if there is none
	Disabled       bool   // the mode is Disabled, in which an admission within the limits is an unpaced start
}

func (e StartEvent) report(o *Observer) {
	log := e.log(o).WithFields(logrus.Fields{"waiting": e.Waiting, "starting": e.Starting})
	if e.Container != "" {
		log = log.WithField("container_id", e.Container)
	}
	if e.Reason != "" {
		log = log.WithField("reason", e.Reason)
	}
	name, took := e.Name, e.Took.Round(100*time.Millisecond)
	switch e.State {
	case throttle.Starting:
		o.metrics.admissions.WithLabelValues(string(e.Reason)).Inc()
		o.metrics.waits.WithLabelValues(string(e.Reason)).Observe(e.Took.Seconds())
		if e.Disabled && e.Reason == reasons.WithinLimits {
			Unpaced{Reason: Disabled}.report(o)
		}
		text := fmt.Sprintf("start of pod %s admitted after %s", name, took)
		if e.Reason != reasons.WithinLimits {
			text += ": " + string(e.Reason)
		}
		log = log.WithField("wait_ms", e.Took.Milliseconds())
		switch e.Reason {
		case reasons.LastResort:
			log.Error(text + ": this is a fault of the daemon: nothing was admitted for too long, and the pod starts whatever the limits say")
		case reasons.ByHand:
			log.Warn(text + ": 'pod-pacemaker admit' let it start, whatever the limits say")
		default:
			log.Info(text)
		}
	case throttle.Waiting:
		if e.Reason == "" {
			log.Debugf("pod %s joined the queue", name)
			break
		}
		o.metrics.expired.Inc()
		log.Warnf("the wait of pod %s in the gate ended without a turn: kubelet tries again, the pod keeps its place", name)
	case throttle.Started, throttle.Gone:
		if e.State == throttle.Gone && e.Admission == "" {
			log.Infof("pod %s left the queue: %s", name, e.Reason)
			break
		}
		// The start may have been over before the daemon learned of it.
		if e.Admission == reasons.Adopted && e.Reason != reasons.Stuck {
			log.Infof("start of pod %s, under way when the daemon learned of it, ended: %s", name, e.Reason)
			break
		}
		o.metrics.starts.WithLabelValues(string(e.Reason)).Observe(e.Took.Seconds())
		log = log.WithField("start_ms", e.Took.Milliseconds())
		if e.Reason == reasons.Stuck {
			log.Warnf("start of pod %s is stuck after %s and no longer counts", name, took)
		} else {
			log.Infof("start of pod %s ended after %s: %s", name, took, e.Reason)
		}
	}
	o.pods.happened(o.events, e.Pod, e.Event)
}

// ShadowEvent is an event of the limiter about a start that continued at once in the mode Shadow: what would have
// happened in the mode Enforce. It is logged, and the wait counted. No event is written on the pod, because nothing
// happened to it.
type ShadowEvent struct {
	Pod
	throttle.Event                // without the Ticket
	HeldBy         reasons.Reason // the limit that would have held the start
}

func (e ShadowEvent) report(o *Observer) {
	o.pods.forget(e.Pod, e.Event)
	name, took := e.Name, e.Took.Round(100*time.Millisecond)
	log := e.log(o).WithFields(logrus.Fields{"waiting": e.Waiting, "starting": e.Starting, "reason": e.HeldBy})
	switch e.State {
	case throttle.Starting:
		o.metrics.shadowWaits.WithLabelValues(string(e.HeldBy)).Observe(e.Took.Seconds())
		log.WithField("wait_ms", e.Took.Milliseconds()).Infof("pod %s would have waited for %s, but the mode is Shadow: %s", name, took, e.HeldBy)
	case throttle.Started, throttle.Gone:
		log.WithFields(logrus.Fields{"start_ms": e.Took.Milliseconds(), "reason": e.Reason}).Debugf("start of pod %s would have ended after %s, but the mode is Shadow: %s", name, took, e.Reason)
	}
}

// Reasons why a start is unpaced.
const (
	// NotAsked: the hook started its container by itself, or the daemon was not asked.
	NotAsked reasons.Reason = "NotAsked"
	// Panic: the handler panicked before it made a decision.
	Panic reasons.Reason = "Panic"
	// Shadow: the mode is Shadow, so the wait is only reported.
	Shadow reasons.Reason = "Shadow"
	// Disabled: the mode is Disabled, so there are no limits.
	Disabled reasons.Reason = "Disabled"
)

// unpacedTexts explain to people the reasons that no mode asks for. They follow the name of the pod.
var unpacedTexts = map[reasons.Reason]string{
	NotAsked: "it started without a decision of the daemon; its start counts from now on",
	Panic:    "a handler of the daemon failed: the pod starts unpaced",
}

// Unpaced is a start that is not paced. It is counted. With the reason NotAsked or Panic it is logged, and an
// event is written on the pod. With the reason Shadow it is only logged; a ShadowEvent reports how that ends.
type Unpaced struct {
	Pod                   // empty if it is not known. Only the reasons Adopted and Disabled allow that.
	Reason reasons.Reason // also reasons.Adopted
	HeldBy reasons.Reason // the limit that would have held the start; only with the reason Shadow
}

func (e Unpaced) report(o *Observer) {
	o.metrics.unpaced.WithLabelValues(string(e.Reason)).Inc()
	switch e.Reason {
	case Shadow:
		e.log(o).WithField("reason", e.HeldBy).Infof("pod %s would wait, but the mode is Shadow: %s", e.Name, e.HeldBy)
	case NotAsked, Panic:
		text := unpacedTexts[e.Reason]
		e.log(o).WithField("reason", e.Reason).Warnf("pod %s: %s", e.Name, text)
		if o.pods.rare.allow(time.Now()) {
			o.events.Pod(e.UID, e.Name, corev1.EventTypeWarning, eventUnpaced, string(e.Reason)+": "+text)
		}
	}
}

// Learned is what the start of a pod took. It is logged at the level debug, and counted. A start that was killed is
// only logged: it would have taken more.
type Learned struct {
	Pod
	Took     costs.Start
	Basis    string     // of the estimate: Owner, Image, Revisions, Namespace or None
	Expected costs.Cost // when it began
}

func (e Learned) report(o *Observer) {
	e.log(o).WithFields(logrus.Fields{
		"cpu_ms": e.Took.CPU.Milliseconds(), "wall_ms": e.Took.Wall.Milliseconds(), "waited_ms": e.Took.Waited.Milliseconds(),
		"idle_ms": e.Took.Idle.Milliseconds(), "peak_cores": e.Took.Peak, "disk_bytes": e.Took.Disk, "killed": e.Took.Killed,
		"basis": e.Basis, "expected_cpu_ms": int64(1000 * e.Expected.CPU.Mean),
	}).Debugf("learned what the start of pod %s took: %s of CPU time in %s", e.Name, e.Took.CPU, e.Took.Wall)
	if e.Took.Killed {
		return
	}
	cpu := e.Took.CPU.Seconds()
	o.metrics.startCPU.WithLabelValues(e.Basis).Add(cpu)
	o.metrics.expectedCPU.WithLabelValues(e.Basis).Add(e.Expected.CPU.Mean)
	if e.Expected.CPU.Mean > 0 {
		o.metrics.costRatio.WithLabelValues(e.Basis).Observe(cpu / e.Expected.CPU.Mean)
	}
}

// Unmeasured says that the daemon cannot read what a start uses. Report it once for each fault. It is logged: for want of a
// right, which concerns most pods, only the first at the level warning.
type Unmeasured struct {
	Pod
	Why error
}

func (e Unmeasured) report(o *Observer) {
	log := e.log(o).WithError(e.Why)
	const text = "cannot read what pod %s uses: it counts as making progress, and nothing is learned of its start"
	switch {
	case !errors.Is(e.Why, fs.ErrPermission):
		log.Warnf(text, e.Name)
	case o.unreadable.Swap(true):
		log.Debugf(text, e.Name)
	default:
		log.Warnf(text+"; so it is with most pods: the daemon needs CAP_SYS_PTRACE (processIO=true of the chart, deploy/systemd/process-io.conf of the unit)", e.Name)
	}
}
