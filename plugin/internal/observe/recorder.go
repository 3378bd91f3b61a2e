package observe

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// EventWriter writes Kubernetes events. kind is Normal or Warning; reason is one word. Its methods do not block. They
// are safe for concurrent use.
type EventWriter interface {
	// Pod writes an event on a pod. name is "namespace/name".
	Pod(uid, name, kind, reason, message string)
	// Node writes an event on the node.
	Node(kind, reason, message string)
}

// mostMessage is the length of the longest message, in bytes, as in the API of events.
const mostMessage = 1024

// Recorder writes Kubernetes events after Start is called; before, it drops them. client-go aggregates them and limits
// their rate. Make it with NewRecorder. The zero value drops all.
type Recorder struct {
	client   kube.Interface
	source   corev1.EventSource
	onNode   *corev1.ObjectReference
	recorder atomic.Pointer[record.EventRecorder]
}

// NewRecorder returns a Recorder for the daemon of a node. instance is the daemon's name if a node has several, else
// empty.
func NewRecorder(client kube.Interface, node, instance string) *Recorder {
	source := corev1.EventSource{Component: "pod-pacemaker", Host: node}
	if instance != "" {
		source.Component += "-" + instance
	}
	return &Recorder{
		client: client, source: source,
		// By kubelet's convention the UID of a node in events is its name.
		onNode: &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: types.UID(node)},
	}
}

// Start begins to write events, until stop is called. Call Start once.
func (r *Recorder) Start() (stop func()) {
	b := record.NewBroadcaster()
	b.StartRecordingToSink(eventSink{r.client})
	var recorder record.EventRecorder = b.NewRecorder(kube.Scheme, r.source)
	r.recorder.Store(&recorder)
	return b.Shutdown
}

// Node implements EventWriter.
func (r *Recorder) Node(kind, reason, message string) { r.write(r.onNode, kind, reason, message) }

// Pod implements EventWriter.
func (r *Recorder) Pod(uid, name, kind, reason, message string) {
	n := PodName(name)
	r.write(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: n.Namespace, Name: n.Name, UID: types.UID(uid),
	}, kind, reason, message)
}

func (r *Recorder) write(on *corev1.ObjectReference, kind, reason, message string) {
	if recorder := r.recorder.Load(); recorder != nil {
		(*recorder).Event(on, kind, reason, plain.Line(message, mostMessage))
	}
}

// eventSink makes a client a record.EventSink.
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
