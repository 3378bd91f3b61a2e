package podwatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// listWatch lists and watches the pods of one node, and notes in h how that goes. The informer's own error handler
// does not suffice: client-go calls it neither while it retries a refused connection, nor for errors inside a stream.
func listWatch(client kube.Interface, node string, h *health) cache.ListerWatcher {
	pods := client.Pods(metav1.NamespaceAll)
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	return cache.ToListWatcherWithWatchListSemantics(informer.Endable(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			h.mute.newest(&opts)
			began := time.Now()
			list, err := pods.List(ctx, opts)
			switch {
			case err == nil:
				h.mute.complete(began)
			case ctx.Err() == nil:
				h.failed(fmt.Errorf("list pods: %w", err))
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector, opts.Watch = selector, true
			h.mute.newest(&opts)
			inner, err := pods.Watch(ctx, opts)
			if err != nil {
				if ctx.Err() == nil && !fallsBackToList(opts, err) {
					h.failed(fmt.Errorf("watch pods: %w", err))
				}
				return nil, err
			}
			return observe(ctx, inner, opts, h), nil
		},
	}), client)
}

// fallsBackToList is true of the answer of an API server that cannot stream the initial list:
// client-go lists instead, at once.
func fallsBackToList(opts metav1.ListOptions, err error) bool {
	return opts.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// shortWatch is the age below which client-go takes the end of a watch without events for a failure.
const shortWatch = time.Second

var errShortWatch = errors.New("watch pods: the API server closes the watch at once")

// stream passes on the events of a watch and notes in h what they say about the API server.
type stream struct {
	inner  watch.Interface
	ctx    context.Context // of the request: once it ends, errors say nothing about the API server
	health *health
	opened time.Time
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func observe(ctx context.Context, inner watch.Interface, opts metav1.ListOptions, h *health) watch.Interface {
	s := &stream{inner: inner, ctx: ctx, health: h, opened: time.Now(), events: make(chan watch.Event), done: make(chan struct{})}
	if opts.SendInitialEvents == nil || !*opts.SendInitialEvents {
		h.works()
	}
	go s.pass()
	return s
}

// ResultChan returns the channel of events; it is closed when the watch ends.
func (s *stream) ResultChan() <-chan watch.Event { return s.events }

// Stop ends the watch. It can be called more than once.
func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.done)
		s.inner.Stop()
	})
}

func (s *stream) pass() {
	defer close(s.events)
	for count := 0; ; count++ {
		event, ok := s.next()
		if !ok {
			if count == 0 && time.Since(s.opened) < shortWatch {
				s.failed(errShortWatch)
			}
			return
		}
		s.note(event)
		select {
		case s.events <- event:
		case <-s.done:
			return
		}
	}
}

// next gives the next event, which is an error of this side where the stream is mute; false: the stream ended.
func (s *stream) next() (watch.Event, bool) {
	for {
		select {
		case event, ok := <-s.inner.ResultChan():
			return event, ok
		case <-s.health.mute.again:
			if s.health.mute.now() { // and was not listed meanwhile
				return expired(), true
			}
		}
	}
}

// note looks for events that are about the stream itself: an error, or the end of the initial list.
func (s *stream) note(event watch.Event) {
	switch event.Type {
	case watch.Error:
		s.failed(fmt.Errorf("watch pods: %w", apierrors.FromObject(event.Object)))
	case watch.Bookmark:
		if object, ok := event.Object.(metav1.Object); ok && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			s.health.mute.complete(s.opened)
			s.health.works()
		}
	}
}

// failed notes a failure, unless it only comes from the stream being ended on this side.
func (s *stream) failed(err error) {
	select {
	case <-s.done:
	case <-s.ctx.Done():
	default:
		s.health.failed(err)
	}
}
