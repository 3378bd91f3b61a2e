package evictions

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
)

// kubelet is the component that its events name.
const kubelet = "kubelet"

// only has the API server leave out all other events.
func only(cause Cause) string {
	return fields.AndSelectors(
		fields.OneTermEqualSelector("involvedObject.kind", "Pod"),
		fields.OneTermEqualSelector("reason", string(cause)),
	).String()
}

// namespaceWatch watches one namespace for one cause.
type namespaceWatch struct {
	target
	ctx  context.Context // it ends with the watch
	stop context.CancelFunc
	seen map[Pod]time.Time // when kubelet began to take it down; the mutex of the Watch guards it
}

func newNamespaceWatch(ctx context.Context, this target) *namespaceWatch {
	ctx, stop := context.WithCancel(ctx)
	return &namespaceWatch{target: this, ctx: ctx, stop: stop, seen: map[Pod]time.Time{}}
}

// run watches until that one is stopped.
func (w *Watch) run(one *namespaceWatch) {
	defer one.stop()
	api, selector := w.client.Events(one.namespace), only(one.cause)
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return api.Watch(ctx, o)
		},
	}
	note := func(obj any) {
		if event, ok := obj.(*corev1.Event); ok {
			w.note(one, event)
		}
	}
	i, err := informer.New(w.reach, lw, w.client, &corev1.Event{}, trim, cache.ResourceEventHandlerFuncs{
		AddFunc:    note,
		UpdateFunc: func(_, obj any) { note(obj) },
		DeleteFunc: func(obj any) {
			if event, ok := obj.(*corev1.Event); ok {
				w.forget(one, event)
			}
		},
	})
	if err != nil {
		w.log.WithError(err).Error("the events of evictions and preemptions are not watched")
		return
	}
	i.Run(one.ctx)
}

// note takes over an event, and tells of it if by it this node's kubelet takes a pod down,
// and that goes on.
func (w *Watch) note(one *namespaceWatch, event *corev1.Event) {
	// Events of the newer API tell their source by the other fields.
	by, host := cmp.Or(event.Source.Component, event.ReportingController), cmp.Or(event.Source.Host, event.ReportingInstance)
	if by != kubelet || host != w.node || event.Reason != string(one.cause) {
		return
	}
	pod, at := podOf(event), latest(event)
	w.mu.Lock()
	one.seen[pod] = at
	w.mu.Unlock()
	if time.Since(at) < Believed {
		w.tell(pod, one.cause)
	}
}

// forget drops what an event said that the API server has no longer. A deletion that was
// missed leaves it there until the namespace is watched no more: it is not believed in any
// longer by then.
func (w *Watch) forget(one *namespaceWatch, event *corev1.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(one.seen, podOf(event))
}

func podOf(event *corev1.Event) Pod {
	o := event.InvolvedObject
	return Pod{Namespace: event.Namespace, Name: o.Name, UID: string(o.UID)}
}

// latest gives when an event happened last, by the clock of the node.
func latest(event *corev1.Event) time.Time {
	at := event.LastTimestamp.Time
	for _, other := range []time.Time{event.FirstTimestamp.Time, event.EventTime.Time} {
		if other.After(at) {
			at = other
		}
	}
	return at
}

// trim drops all of an event but what note reads.
func trim(obj any) (any, error) {
	event, ok := obj.(*corev1.Event)
	if !ok {
		return obj, nil
	}
	o := event.InvolvedObject
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion,
		},
		InvolvedObject: corev1.ObjectReference{Name: o.Name, UID: o.UID},
		Reason:         event.Reason,
		Source:         event.Source, ReportingController: event.ReportingController, ReportingInstance: event.ReportingInstance,
		FirstTimestamp: event.FirstTimestamp, LastTimestamp: event.LastTimestamp, EventTime: event.EventTime,
	}, nil
}
