package plugin

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	events "k8s.io/client-go/tools/record"
)

// notices write Kubernetes events. kind is Normal or Warning; reason is one word. They
// do not block, and are safe for concurrent use.
type notices interface {
	// pod writes an event on a pod.
	pod(uid, title, kind, reason, message string)
	// node writes an event on the node.
	node(kind, reason, message string)
}

// noNotices is for a daemon without an API server.
type noNotices struct{}

func (noNotices) pod(string, string, string, string, string) {}

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

func (n *podNotices) pod(uid, title, kind, reason, message string) {
	namespace, name := splitTitle(title)
	n.recorder.Event(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID(uid),
	}, kind, reason, message)
}

// splitTitle splits "namespace/name".
func splitTitle(title string) (namespace, name string) {
	namespace, name, ok := strings.Cut(title, "/")
	if !ok {
		return "", title
	}
	return namespace, name
}
