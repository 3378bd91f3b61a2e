package informer

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// shortWatch is the age below which client-go takes the end of a watch without events for a failure.
const shortWatch = time.Second

var errShortWatch = errors.New("the API server closes the watch at once")

// stream passes on the events of a watch and reports its errors to health. client-go does not report errors inside
// a stream.
type stream struct {
	inner  watch.Interface
	ctx    context.Context // of the request
	health *health
	opened time.Time
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func (h *health) stream(ctx context.Context, inner watch.Interface) watch.Interface {
	s := &stream{inner: inner, ctx: ctx, health: h, opened: time.Now(), events: make(chan watch.Event), done: make(chan struct{})}
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
	empty := true
	for event := range s.inner.ResultChan() {
		empty = false
		if event.Type == watch.Error {
			s.fail(apierrors.FromObject(event.Object))
		}
		select {
		case s.events <- event:
		case <-s.done:
			return
		}
	}
	if empty && time.Since(s.opened) < shortWatch {
		s.fail(errShortWatch)
	}
}

// fail records a failure, unless Stop was called.
func (s *stream) fail(err error) {
	select {
	case <-s.done:
	default:
		s.health.fail(s.ctx, err)
	}
}
