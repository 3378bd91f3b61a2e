package observe

import (
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"
)

// Event is something that happened. Each kind is a type of this package, whose fields say what happened. Its method
// report alone says what that causes: lines in the log, metrics, and Kubernetes events on the pod or on the node. The
// interface is sealed: no other package can add a kind.
type Event interface {
	// report writes the event to the log, the metrics and the Kubernetes events of o. It must not block.
	report(o *Observer)
}

// Report reports an event. It does not block. A panic is caught, and counted as a panic of the part with the name of
// the event's type. Report is safe for concurrent use, except for a StartEvent and a ShadowEvent: only one goroutine
// may report these.
func (o *Observer) Report(e Event) {
	defer func() {
		if fault := recover(); fault != nil {
			var fields logrus.Fields
			if about, ok := e.(interface{ pod() Pod }); ok && about.pod() != (Pod{}) {
				fields = about.pod().fields()
			}
			o.Panicked(strings.TrimPrefix(fmt.Sprintf("%T", e), "observe."), fault, fields)
		}
	}()
	e.report(o)
}

// Pod is the pod that an event is about.
type Pod struct {
	UID  string
	Name string // "namespace/name"
}

func (p Pod) pod() Pod { return p }

// fields returns the fields that name the pod in the log.
func (p Pod) fields() logrus.Fields {
	n := PodName(p.Name)
	return logrus.Fields{"pod_namespace": n.Namespace, "pod_name": n.Name, "pod_uid": p.UID}
}

// log returns the log of o, with those fields.
func (p Pod) log(o *Observer) logrus.FieldLogger { return o.log.WithFields(p.fields()) }

// PodName splits the name of a pod, "namespace/name". Of a name without a slash, the namespace is empty.
func PodName(name string) types.NamespacedName {
	slash := strings.IndexByte(name, '/')
	return types.NamespacedName{Namespace: name[:max(slash, 0)], Name: name[slash+1:]}
}
