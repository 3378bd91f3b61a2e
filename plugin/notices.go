package plugin

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	events "k8s.io/client-go/tools/record"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
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
func newPodNotices(client kube.Interface, node, instance string) *podNotices {
	b := events.NewBroadcaster()
	b.StartRecordingToSink(eventSink{client})
	source := corev1.EventSource{Component: "pod-pacemaker", Host: node}
	if instance != "" {
		source.Component += "-" + instance
	}
	// By kubelet's convention the UID of a node in events is its name.
	onNode := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)}
	return &podNotices{onNode: onNode, broadcaster: b, recorder: b.NewRecorder(kube.Scheme, source)}
}

// eventSink writes events by a client, as client-go's recorder wants it.
type eventSink struct{ client kube.Interface }

// Create implements record.EventSink.
func (s eventSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.client.Events(event.Namespace).Create(context.Background(), event, metav1.CreateOptions{})
}

// Update implements record.EventSink.
func (s eventSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.client.Events(event.Namespace).Update(context.Background(), event, metav1.UpdateOptions{})
}

// Patch implements record.EventSink.
func (s eventSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.client.Events(event.Namespace).Patch(context.Background(), event.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
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
