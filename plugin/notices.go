package plugin

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	events "k8s.io/client-go/tools/record"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// notices are the Kubernetes events on pods. tell must not block.
type notices interface {
	tell(e throttle.Event)
	// node writes an event on the node.
	node(kind, reason, message string)
}

// noNotices is for a daemon without an API server.
type noNotices struct{}

func (noNotices) tell(throttle.Event) {}

func (noNotices) node(string, string, string) {}

// podNotices writes Kubernetes events, aggregated and rate-limited by client-go.
type podNotices struct {
	onNode      *corev1.ObjectReference
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
}

// newPodNotices begins to write events with the client; stop ends it.
func newPodNotices(client kubernetes.Interface, node, instance string) *podNotices {
	b := events.NewBroadcaster()
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	source := corev1.EventSource{Component: "pod-pacemaker", Host: node}
	if instance != "" {
		source.Component += "-" + instance
	}
	// By kubelet's convention the UID of a node in events is its name.
	onNode := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	return &podNotices{onNode: onNode, broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, source)}
}

func (n *podNotices) stop() { n.broadcaster.Shutdown() }

func (n *podNotices) node(kind, reason, message string) {
	n.recorder.Event(n.onNode, kind, reason, message)
}

func (n *podNotices) tell(e throttle.Event) {
	namespace, name := splitTitle(e.Ticket.Name())
	pod := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(e.Ticket.UID()),
	}
	took := e.Took.Round(100 * time.Millisecond)
	switch {
	case e.Kind == throttle.KindEnded && e.Reason == throttle.Stuck:
		n.recorder.Event(pod, corev1.EventTypeWarning, "StartStuck",
			fmt.Sprintf("Not ready %s after it was admitted; the start no longer counts and others go on", took))
	case e.Kind == throttle.KindAdmitted && (e.Reason == throttle.MaxWait || e.Reason == throttle.GateDeadline):
		n.recorder.Event(pod, corev1.EventTypeNormal, "StartAdmitted",
			fmt.Sprintf("Admitted over the limit after %s (%s)", took, e.Reason))
	case e.Kind == throttle.KindExpired:
		n.recorder.Event(pod, corev1.EventTypeWarning, string(e.Reason),
			"The wait in the gate ended without a turn; kubelet tries again, the pod keeps its place")
	}
}

// splitTitle splits "namespace/name".
func splitTitle(title string) (namespace, name string) {
	namespace, name, ok := strings.Cut(title, "/")
	if !ok {
		return "", title
	}
	return namespace, name
}
