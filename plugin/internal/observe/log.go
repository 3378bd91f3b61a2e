package observe

import (
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// PodName splits the name of a pod, "namespace/name". Of a name without a slash, the namespace is empty.
func PodName(name string) types.NamespacedName {
	slash := strings.IndexByte(name, '/')
	return types.NamespacedName{Namespace: name[:max(slash, 0)], Name: name[slash+1:]}
}

// PodLog returns a logger with fields that name a pod; name is "namespace/name".
func (o *Observer) PodLog(uid, name string) logrus.FieldLogger {
	return o.log.WithFields(podFields(uid, name))
}

func podFields(uid, name string) logrus.Fields {
	n := PodName(name)
	return logrus.Fields{"pod_namespace": n.Namespace, "pod_name": n.Name, "pod_uid": uid}
}

func (o *Observer) logEvent(e throttle.Event, container string) {
	log := o.PodLog(e.Ticket.UID(), e.Ticket.Name()).WithFields(logrus.Fields{"waiting": e.Waiting, "starting": e.Starting})
	if container != "" {
		log = log.WithField("container_id", container)
	}
	if e.Reason != "" {
		log = log.WithField("reason", e.Reason)
	}
	pod, took := e.Ticket.Name(), e.Took.Round(100*time.Millisecond)
	switch e.State {
	case throttle.Starting:
		log.WithField("wait_ms", e.Took.Milliseconds()).Infof("start of pod %s admitted after %s", pod, took)
	case throttle.Waiting:
		if e.Reason == "" {
			log.Debugf("pod %s joined the queue", pod)
		} else {
			log.Warnf("the wait of pod %s in the gate ended without a turn: kubelet tries again, the pod keeps its place", pod)
		}
	case throttle.Started, throttle.Gone:
		log = log.WithField("start_ms", e.Took.Milliseconds())
		if e.Reason == reasons.Stuck {
			log.Warnf("start of pod %s is stuck after %s and no longer counts", pod, took)
		} else {
			log.Infof("start of pod %s ended after %s: %s", pod, took, e.Reason)
		}
	}
}
